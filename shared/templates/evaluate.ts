import { type Bounds, compileExpression, compileFilters } from './evaluate-expression.js'
import { RenderFault } from './fault.js'
import type { ForStatement, Statement, Target, Template } from './nodes.js'
import { text } from './print.js'
import { type Run, UNSET } from './run.js'
import { type Execute, type Inputs, Scope, Slots, unset } from './scope.js'
import { LoopState, type Value } from './values.js'

/** Writes one message's text. */
export type RenderMessage = (run: Run) => string

/**
 * Turns a message's tree into closures, once per prompt version. The closures touch the run they are given and constants
 * of the template, nothing else.
 *
 * @param inputs the prompt's, as `bounds`. @throws ParseFault
 */
export function compileTemplate(template: Template, inputs: Inputs, bounds: Bounds): RenderMessage {
  const slots = new Slots()
  bounds.line = 1
  const body = new StatementCompiler(new Scope(slots, inputs, null), bounds).block(template.body)
  return run => {
    run.out = ''
    run.line = 1
    run.slots = slots.count === 0 ? [] : new Array<typeof UNSET>(slots.count).fill(UNSET)
    body(run)
    run.written += run.out.length
    return run.out
  }
}

class StatementCompiler {
  constructor(
    readonly scope: Scope,
    readonly bounds: Bounds,
  ) {}

  block(statements: readonly Statement[]): Execute {
    const parts: Execute[] = []
    for (let at = 0; at < statements.length; ) {
      const plain = this.#plainFrom(statements, at)
      if (plain.length > 1) parts.push(this.#plain(plain))
      else parts.push(this.bounds.nested(() => this.#statement(statements[at] as Statement)))
      at += Math.max(1, plain.length)
    }
    const [only] = parts
    if (parts.length === 1 && only !== undefined) return only
    return run => {
      for (let at = 0; at < parts.length; at++) (parts[at] as Execute)(run)
    }
  }

  /** Text and the caller's variables in a row, as most of a prompt is. */
  #plainFrom(statements: readonly Statement[], from: number): (string | number)[] {
    const row: (string | number)[] = []
    for (let at = from; at < statements.length; at++) {
      const piece = this.#plainPiece(statements[at] as Statement)
      if (piece === null) break
      row.push(piece)
    }
    return row
  }

  /** A text, or a place in `Run.inputs`. */
  #plainPiece(statement: Statement): string | number | null {
    if (statement.kind === 'text') return statement.text
    if (statement.kind !== 'output' || statement.value.kind !== 'name') return null
    return this.scope.inputPlace(statement.value.name)
  }

  /** One closure for the row: 400 pieces cost 25 µs less than a closure each. */
  #plain(row: readonly (string | number)[]): Execute {
    this.bounds.count(row.length)
    return run => {
      run.charge(row.length)
      for (let at = 0; at < row.length; at++) {
        const piece = row[at] as string | number
        if (typeof piece === 'string') run.emit(piece)
        else {
          const value = run.inputs[piece]
          run.emit(typeof value === 'string' ? value : text(run, value))
        }
      }
    }
  }

  #statement(statement: Statement): Execute {
    if ('line' in statement) this.bounds.line = statement.line
    switch (statement.kind) {
      case 'text': {
        const { text: constant } = statement
        return run => {
          run.step()
          run.emit(constant)
        }
      }
      case 'output':
        return this.#output(statement)
      case 'if':
        return this.#if(statement)
      case 'for':
        return this.#for(statement)
      case 'set':
        return this.#set(statement)
      case 'capture':
        return this.#capture(statement)
    }
  }

  #output({ value: node, line }: Statement & { kind: 'output' }): Execute {
    const value = compileExpression(node, this.scope, this.bounds)
    return run => {
      run.step()
      run.line = line
      run.emit(text(run, value(run)))
    }
  }

  #if({ branches, otherwise }: Statement & { kind: 'if' }): Execute {
    const parts = branches.map(({ test, body, line }) => {
      this.bounds.line = line
      return { test: compileExpression(test, this.scope, this.bounds), body: this.block(body), line }
    })
    const last = this.block(otherwise)
    return run => {
      for (const { test, body, line } of parts) {
        run.step()
        run.line = line
        if (run.truthy(test(run))) return body(run)
      }
      last(run)
    }
  }

  #for({ target, iterable, test, body, otherwise, line }: ForStatement): Execute {
    const { scope, bounds } = this
    const items = compileExpression(iterable, scope, bounds)
    const inner = scope.inner()
    const assign = this.#assign(target, inner, true)
    const wanted = test === null ? null : compileExpression(test, inner, bounds)
    const loopSlot = inner.bind('loop', true)
    const each = new StatementCompiler(inner, bounds).block(body)
    const empty = this.block(otherwise)
    const { setSlots } = inner
    return run => {
      run.line = line
      let list = run.list(items(run))
      if (wanted !== null) {
        list = list.filter(item => {
          run.step()
          assign(run, item)
          return run.truthy(wanted(run))
        })
      }
      if (list.length === 0) return empty(run)
      const loop = new LoopState(list)
      for (let at = 0; at < list.length; at++) {
        run.step()
        loop.index0 = at
        // An inner loop of this one, or this one's filter, has used the slots meanwhile.
        run.slots[loopSlot] = loop
        unset(run, setSlots)
        assign(run, list[at])
        each(run)
      }
    }
  }

  #set({ target, value: node, line }: Statement & { kind: 'set' }): Execute {
    const value = compileExpression(node, this.scope, this.bounds)
    const assign = this.#assign(target, this.scope, false)
    return run => {
      run.step()
      run.line = line
      assign(run, value(run))
    }
  }

  #capture({ target, filters, body, line }: Statement & { kind: 'capture' }): Execute {
    const inner = this.scope.inner()
    const write = new StatementCompiler(inner, this.bounds).block(body)
    const slot = this.scope.slots.count++
    const filtered = compileFilters(filters, run => run.slots[slot] as Value, this.scope, this.bounds)
    const assign = this.#assign(target, this.scope, false)
    return run => {
      const before = run.out
      run.out = ''
      unset(run, inner.setSlots)
      write(run)
      run.slots[slot] = run.out
      run.text(run.out.length)
      run.out = before
      run.line = line
      assign(run, filtered(run))
    }
  }

  #assign(target: Target, scope: Scope, always: boolean): (run: Run, value: Value) => void {
    if (target.kind === 'member') {
      const { name, field } = target
      const owner = scope.read(name)
      return (run, value) => {
        run.namespace(owner(run), name).fields.set(field, value)
      }
    }
    if (target.kind === 'name') {
      const slot = scope.bind(target.name, always)
      return (run, value) => {
        run.slots[slot] = value
      }
    }
    const parts = this.bounds.nested(() => target.items.map(part => this.#assign(part, scope, always)))
    return (run, value) => {
      const values = run.list(value)
      if (values.length !== parts.length) {
        throw new RenderFault(`${parts.length} names cannot take ${values.length} value(s)`)
      }
      for (let at = 0; at < parts.length; at++) parts[at]?.(run, values[at])
    }
  }
}
