/** Stored prompts: messages are compiled once per version and rendered per call (spec 1, prompt version; design D9). */
import type { PromptMessage } from '../directory/records.js'
import { AppError } from '../errors/app-error.js'
import { compileTemplate, type RenderMessage } from './evaluate.js'
import { Bounds } from './evaluate-expression.js'
import { ParseFault, RenderFault } from './fault.js'
import { takeInputs } from './inputs.js'
import { hasTags } from './lexer.js'
import { OUTPUT_MAX_BYTES, SOURCE_MAX_LENGTH } from './limits.js'
import { parse } from './parse.js'
import { Run, tooMuchOutput } from './run.js'
import { Inputs } from './scope.js'
import type { Value } from './values.js'
import { readsOf } from './variables.js'

export interface CompiledPrompt {
  readonly messages: readonly CompiledMessage[]
  /** Every name that the caller supplies, in order of first appearance, distinct over all messages. */
  readonly variables: readonly string[]
  /** Names that the messages look up, in the order of `Run.inputs`: `variables`, and those that a message binds too. */
  readonly inputs: readonly string[]
  /** Places in `inputs` of the variables without which rendering stops, in the order of `variables`. */
  readonly required: readonly number[]
}

export interface CompiledMessage {
  readonly message: PromptMessage
  /** null: the content has no tags and is its own output. */
  readonly render: RenderMessage | null
}

/**
 * Only `content` is a template; role and cache_control pass through. Each message is a template of its own.
 * @throws AppError TEMPLATE_PARSE_ERROR, `messages.0.content: <detail> (line n)`
 */
export function compilePrompt(messages: readonly PromptMessage[]): CompiledPrompt {
  const inputs = new Inputs()
  const bounds = new Bounds()
  const variables = new Set<string>()
  const required = new Set<string>()
  const compiled = messages.map((message, at): CompiledMessage => {
    try {
      if (!hasTags(message.content)) return { message, render: null }
      if (message.content.length > SOURCE_MAX_LENGTH) {
        throw new ParseFault(`a template is longer than ${SOURCE_MAX_LENGTH} characters`, 1)
      }
      const template = parse(message.content)
      // First, because it bounds how deep the tree is, which every other walk relies on.
      const render = compileTemplate(template, inputs, bounds)
      const reads = readsOf(template)
      for (const name of reads.names) variables.add(name)
      for (const name of reads.required) required.add(name)
      return { message, render }
    } catch (error) {
      throw parseError(error, at)
    }
  })
  const names = [...variables]
  return {
    messages: compiled,
    variables: names,
    inputs: inputs.names,
    required: names.filter(name => required.has(name)).map(name => inputs.place(name)),
  }
}

/**
 * @param variables the caller's JSON; names that no message reads are ignored
 * @throws AppError TEMPLATE_RENDER_ERROR: `Missing variables: a, b.`; a fault while rendering; a limit
 */
export function renderPrompt(
  prompt: CompiledPrompt,
  variables: Readonly<Record<string, unknown>>,
): PromptMessage[] {
  const run = new Run(inputsOf(prompt, variables))
  const rendered = prompt.messages.map(({ message, render }, at) => {
    if (render === null) run.written += message.content.length
    else return { ...message, content: contentOf(run, render, at) }
    return { ...message }
  })
  if (isTooLarge(run.written, rendered)) throw renderError(tooMuchOutput())
  return rendered
}

function inputsOf(prompt: CompiledPrompt, variables: Readonly<Record<string, unknown>>): readonly Value[] {
  const inputs = taken(prompt, variables)
  const missing: string[] = []
  for (const place of prompt.required) {
    if (inputs[place] === undefined) missing.push(prompt.inputs[place] as string)
  }
  if (missing.length === 0) return inputs
  throw new AppError('TEMPLATE_RENDER_ERROR', `Missing variables: ${missing.join(', ')}.`)
}

function taken({ inputs }: CompiledPrompt, variables: Readonly<Record<string, unknown>>) {
  try {
    return takeInputs(inputs, variables)
  } catch (error) {
    throw renderError(error)
  }
}

function contentOf(run: Run, render: RenderMessage, at: number): string {
  try {
    return render(run)
  } catch (error) {
    throw renderError(error, `messages.${at}.content: `, ` (line ${run.line})`)
  }
}

/** Bytes are counted only where they could be too many: UTF-8 takes at most 3 for a UTF-16 unit. */
function isTooLarge(units: number, messages: readonly PromptMessage[]): boolean {
  if (units * 3 <= OUTPUT_MAX_BYTES) return false
  return messages.reduce((bytes, { content }) => bytes + Buffer.byteLength(content), 0) > OUTPUT_MAX_BYTES
}

function parseError(error: unknown, at: number): unknown {
  const line = error instanceof ParseFault ? ` (line ${error.line})` : ''
  // Nesting is bounded before it could reach the stack's end; should it ever, it is still the template's fault.
  const detail = error instanceof RangeError ? 'the template is nested too deep' : (error as Error).message
  if (!(error instanceof ParseFault || error instanceof RangeError)) return error
  return new AppError('TEMPLATE_PARSE_ERROR', `messages.${at}.content: ${detail}${line}`, { cause: error })
}

function renderError(error: unknown, before = '', after = ''): unknown {
  if (!(error instanceof RenderFault || error instanceof RangeError)) return error
  const detail = error instanceof RenderFault ? error.message : 'a value is too large or nested too deep'
  return new AppError('TEMPLATE_RENDER_ERROR', `${before}${detail}${after}`, { cause: error })
}
