import { randomUUID } from 'node:crypto'
import { isUuid } from '../../shared/contract/common.js'
import type { Answer, Checked } from '../../shared/contract/endpoint.js'
import type { executeTool as contract } from '../../shared/contract/tool-execution.js'
import type { HttpExecutor } from '../../shared/contract/tools.js'
import { AppError, notFound, validation } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import { openSecrets } from '../secrets/secrets.js'
import { versionNotFound } from './aliases.js'
import { type Arguments, buildRequest, type DraftRequest, secretsOf } from './build-request.js'
import { type CheckedResponse, checkResponse } from './check-response.js'
import { type ExecutableRow, findExecutable } from './execution-queries.js'
import { recordExecution } from './execution-span.js'
import { callOutbound } from './outbound.js'
import { OutboundError } from './outbound-call.js'
import { prepareRequest } from './prepare-request.js'
import { SecretSlots } from './secret-slots.js'
import { checkStorable } from './storable-json.js'
import { failure } from './tool-failure.js'

type Request = Checked<typeof contract>['body']
type Execution = Answer<typeof contract>

/**
 * Executes a tool: what is wrong before the call, unknown names and arguments that do not match, is an error of the
 * request; what goes wrong from then on is the execution's outcome, answered and recorded as a span (spec 1, tool
 * version; spec 4, section 6).
 *
 * @param signal ends the call when the caller is gone.
 * @throws AppError NOT_FOUND `Tool not found.`, an alias or version that it does not have, `Trace not found.`;
 *   VALIDATION_ERROR for a client tool, for arguments and for secrets that are missing; UNAVAILABLE.
 */
export async function executeTool(
  deps: Deps,
  teamId: string,
  toolId: string,
  request: Request,
  signal: AbortSignal,
): Promise<Execution> {
  const found = await requireExecutable(deps, teamId, toolId, request)
  const { executor, versionNumber } = found
  const args = request.arguments
  await checkArguments(deps, teamId, found.parametersSchema, args)
  const slots = new SecretSlots(await requireSecrets(deps, teamId, executor))
  const draft = buildRequest(executor, args, slots)
  const startedAtMs = deps.now()
  const clock = performance.now()
  const { httpStatus, ...outcome } = await call(deps, { teamId, executor, draft, args, slots, signal })
  const durationMs = Math.round(performance.now() - clock)
  const [traceId, spanId] = [request.trace?.traceId ?? randomUUID(), randomUUID()]
  const failures = slots.masked(outcome.failures)
  const warnings = slots.masked(outcome.warnings)
  await recordExecution(
    deps,
    {
      ...{
        teamId,
        toolId,
        traceId,
        spanId,
        versionNumber,
        startedAtMs,
        durationMs,
        httpStatus,
        failures,
        warnings,
      },
      toolName: found.name,
      alias: request.version === undefined ? (request.alias ?? DEFAULT_ALIAS) : null,
      parentSpanId: request.trace?.parentSpanId ?? null,
      args: slots.masked(args),
      result: slots.masked(outcome.result),
    },
    found,
  )
  const [error = null, ...alsoDetected] = failures
  const status = error === null ? 'ok' : 'error'
  return { status, result: outcome.result, error, alsoDetected, warnings, durationMs, traceId, spanId }
}

const DEFAULT_ALIAS = 'production'

interface Executable extends ExecutableRow {
  versionNumber: number
  parametersSchema: Record<string, unknown>
  executor: HttpExecutor
}

async function requireExecutable(
  deps: Deps,
  teamId: string,
  toolId: string,
  request: Request,
): Promise<Executable> {
  const { version = null, trace } = request
  const alias = version === null ? (request.alias ?? DEFAULT_ALIAS) : null
  const serve = { alias, versionNumber: version }
  const traceId = trace?.traceId ?? null
  const row = isUuid(toolId) ? await findExecutable(deps.sql, teamId, toolId, serve, traceId) : null
  if (row === null) throw notFound('Tool')
  const { versionNumber, parametersSchema, executor } = row
  if (versionNumber === null || parametersSchema === null || executor === null) {
    if (version !== null) throw versionNotFound(version)
    throw new AppError('NOT_FOUND', `Alias '${alias}' not found for this tool.`)
  }
  if (executor.type === 'client') {
    throw validation(
      'The executor of this version is client: the caller runs the tool, agh cannot execute it.',
    )
  }
  if (row.traceTeamId !== null && row.traceTeamId !== teamId) throw notFound('Trace')
  return { ...row, versionNumber, parametersSchema, executor }
}

/** Arguments that do not match are the caller's mistake, as any other field: nothing is called, nothing recorded. */
async function checkArguments(
  deps: Deps,
  teamId: string,
  schema: Record<string, unknown>,
  args: Arguments,
): Promise<void> {
  checkStorable(args)
  const verdict = await deps.sandbox.validate(schema, args, teamId)
  if (!verdict.ok) throw validation(`arguments: They could not be checked: ${verdict.message}`)
  if (verdict.value.length > 0) throw validation(`arguments: ${verdict.value.join(' ')}`)
}

/** A secret that was removed after the version was committed. */
async function requireSecrets(
  deps: Deps,
  teamId: string,
  executor: HttpExecutor,
): Promise<Map<string, string>> {
  const names = secretsOf(executor)
  const secrets = await openSecrets(deps, teamId, names)
  const missing = names.find(name => !secrets.has(name))
  if (missing !== undefined) throw validation(`Unknown secret '{{secret.${missing}}}'.`)
  return secrets
}

interface ToolCall {
  teamId: string
  executor: HttpExecutor
  draft: DraftRequest
  args: Arguments
  slots: SecretSlots
  signal: AbortSignal
}

type Outcome = CheckedResponse & { httpStatus: number | null }

async function call(
  deps: Deps,
  { teamId, executor, draft, args, slots, signal }: ToolCall,
): Promise<Outcome> {
  const failed = (fault: Outcome['failures'][number]): Outcome => ({
    result: null,
    failures: [fault],
    warnings: [],
    httpStatus: null,
  })
  const prepared = await prepareRequest(deps.sandbox, teamId, executor, draft, args, slots)
  if (!prepared.ok) return failed(prepared.failure)
  try {
    const response = await callOutbound(deps, prepared.request, signal)
    const checked = await checkResponse(deps.sandbox, teamId, executor, response)
    return { ...checked, httpStatus: response.status }
  } catch (error) {
    if (!(error instanceof OutboundError)) throw error
    return failed(failure('transport', error.code, error.message))
  }
}
