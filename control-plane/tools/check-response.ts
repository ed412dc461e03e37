import type { HttpExecutor } from '../../shared/contract/tools.js'
import { AppError } from '../../shared/errors/app-error.js'
import { parseGuestJson } from '../sandbox/guest-json.js'
import type { Sandbox, Verdict } from '../sandbox/sandbox.js'
import type { OutboundResponse } from './outbound-call.js'
import { failure, type ToolFailure } from './tool-failure.js'

export interface CheckedResponse {
  /** The transformed body; null when there is none or the transform failed. */
  result: unknown
  /** In the order of the checks: the first is reported, the others were detected too. */
  failures: ToolFailure[]
  warnings: string[]
}

/** What transforms get (spec 4, section 9 Tools). */
interface TransformInput {
  status: number
  headers: Record<string, string>
  body: unknown
}

/**
 * Checks a response in spec 1's order: status, `failureWhen` on the raw response, then `resultSchema` on the transformed
 * result. A check that fired stops none of the later ones.
 */
export async function checkResponse(
  sandbox: Sandbox,
  teamId: string,
  executor: HttpExecutor,
  response: OutboundResponse,
): Promise<CheckedResponse> {
  const { status, headers } = response
  const input: TransformInput = { status, headers, body: bodyOf(response) }
  const failures: ToolFailure[] = []
  if (status < 200 || status > 299) {
    failures.push(failure('http_status', String(status), `The upstream answered with status ${status}.`))
  }
  const run = (source: string) => settled(sandbox.runTransform(source, input, teamId))
  if (executor.failureWhen !== undefined) failures.push(...declared(await run(executor.failureWhen)))
  const transformed: Verdict<unknown> =
    executor.responseTransform === undefined
      ? { ok: true, value: input.body }
      : await run(executor.responseTransform)
  if (!transformed.ok) {
    failures.push(failure('transform', 'response_transform', `responseTransform: ${transformed.message}`))
    return { result: null, failures, warnings: [] }
  }
  const result = transformed.value
  const mismatch = await mismatchOf(sandbox, teamId, executor, result)
  const warnings: string[] = []
  if (mismatch !== null) {
    const isWarning = executor.resultSchemaSeverity !== 'error'
    if (isWarning) warnings.push(mismatch.message)
    // A warning is no failure of its own, but one of the things that fired beside another.
    if (!isWarning || failures.length > 0) failures.push(mismatch)
  }
  return { result, failures, warnings }
}

/** Parsed when it is JSON, else text; null when there is none. Text that only looks like a number stays text. */
function bodyOf({ headers, text }: OutboundResponse): unknown {
  if (text === '') return null
  const type = headers['content-type']
  const mayBeJson = type === undefined || /\bjson\b/i.test(type) || /^\s*[[{]/.test(text)
  const parsed: Verdict<unknown> = mayBeJson ? parseGuestJson(text) : { ok: false, message: '' }
  return parsed.ok ? parsed.value : text
}

/** `failureWhen` returns null for a healthy call or `{ type, message }` (spec 1). */
function declared(verdict: Verdict<unknown>): ToolFailure[] {
  const broken = (message: string) => [failure('transform', 'failure_when', `failureWhen: ${message}`)]
  if (!verdict.ok) return broken(verdict.message)
  const { value } = verdict
  if (value === null || value === false) return []
  const { type, message } = (typeof value === 'object' ? value : {}) as { type?: unknown; message?: unknown }
  if (typeof type !== 'string' || type === '') return broken('it must return null or { type, message }.')
  const said = typeof message === 'string' && message !== '' ? message : `The tool declared '${type}'.`
  return [failure('tool_declared', type, said)]
}

async function mismatchOf(
  sandbox: Sandbox,
  teamId: string,
  { resultSchema }: HttpExecutor,
  result: unknown,
): Promise<ToolFailure | null> {
  if (resultSchema === undefined) return null
  const verdict = await settled(sandbox.validate(resultSchema, result, teamId))
  if (!verdict.ok) {
    return failure('schema_mismatch', null, `The result could not be checked: ${verdict.message}`)
  }
  if (verdict.value.length === 0) return null
  return failure(
    'schema_mismatch',
    null,
    `The result does not match resultSchema: ${verdict.value.join(' ')}`,
  )
}

/** The call was made: that the sandbox is full now must not hide what came of it. */
async function settled<T>(verdict: Promise<Verdict<T>>): Promise<Verdict<T>> {
  try {
    return await verdict
  } catch (error) {
    if (error instanceof AppError) return { ok: false, message: error.message }
    throw error
  }
}
