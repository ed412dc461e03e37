/** Templates are written by people who may be hostile (reliability 5.1 and 5.5): what the attack lists must not achieve. */
import { type Test, test } from 'tap'
import { AppError } from '../../../shared/errors/app-error.js'
import { type Attack, TRACE } from './attack.js'
import { attacksFoundLater, attacksOnBuiltins } from './attacks-on-builtins.js'
import { attacksOnCost } from './attacks-on-cost.js'
import { attacksOnLookups } from './attacks-on-lookups.js'
import { attacksOnNames } from './attacks-on-names.js'
import { renderedAsJinja } from './rendering.js'

/** Render at most 50 ms, parse at most some; the rest is for a busy machine. */
const MOST_MS = 250
const MOST_BYTES = 1024 * 1024

const prototypes = [
  Object,
  Array,
  String,
  Number,
  Boolean,
  Function,
  Map,
  Set,
  RegExp,
  Error,
  Promise,
  Symbol,
]
const snapshot = () =>
  [...prototypes.map(({ prototype }) => prototype as object), globalThis].map(object =>
    Reflect.ownKeys(object)
      .map(key => `${String(key)}:${typeof Object.getOwnPropertyDescriptor(object, key)?.value}`)
      .sort(),
  )

const worst = { name: '', ms: 0 }

/** The fastest of up to three tries: what a busy machine adds is not the template's. */
function fastest(work: () => void): number {
  let best = Number.POSITIVE_INFINITY
  for (let tries = 0; tries < 3 && best >= MOST_MS; tries++) {
    const startedAt = performance.now()
    work()
    best = Math.min(best, performance.now() - startedAt)
  }
  return best
}

function contained(t: Test, { name, template, variables = {} }: Attack): void {
  let output = ''
  let outcome = 'rendered'
  const ms = fastest(() => {
    try {
      output = renderedAsJinja(template, variables)
    } catch (error) {
      outcome = error instanceof AppError ? error.code : String(error)
    }
  })
  if (ms > worst.ms) Object.assign(worst, { name, ms })
  t.match(outcome, /^(rendered|TEMPLATE_(PARSE|RENDER)_ERROR)$/, `${name}: at most refused`)
  t.ok(ms < MOST_MS, `${name}: ${ms.toFixed(0)} ms`)
  t.ok(Buffer.byteLength(output) <= MOST_BYTES, `${name}: ${output.length} characters`)
  t.notMatch(
    output,
    /\[native code\]|root:|\[object/,
    `${name}: nothing of JavaScript or the machine is shown`,
  )
  t.notOk(Object.hasOwn(globalThis, TRACE), `${name}: no code ran`)
}

// Node loads some globals, and leaves names of its own, when they are first looked at.
snapshot()

const lists: [promise: string, attacks: Attack[], count: number][] = [
  ['no look-up leads from a value to JavaScript or to a file', attacksOnLookups, 46],
  ['no name becomes code, pollutes a prototype or leaks a global', attacksOnNames, 21],
  ['no template takes the stack, the memory or more than its time', attacksOnCost, 41],
  ['no built-in costs more than it charges, or knows a name of JavaScript', attacksOnBuiltins, 47],
  ['what was found while building stays contained', attacksFoundLater, attacksFoundLater.length],
]

for (const [promise, attacks, count] of lists) {
  test(`${promise} (${count} attacks)`, async t => {
    t.equal(attacks.length, count)
    const before = snapshot()
    for (const each of attacks) contained(t, each)
    t.same(snapshot(), before, 'prototypes and globals are unchanged')
    t.comment(`slowest so far: ${worst.name}, ${worst.ms.toFixed(1)} ms`)
  })
}
