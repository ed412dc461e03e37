import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { writeSpans } from '../traces/ingest.js'
import { clean, hiddenKeys, storable } from '../traces/payload.js'
import { hasWarning, type SpanWrite } from '../traces/span-write.js'
import { insertExecution } from './execution-queries.js'
import type { ToolFailure } from './tool-failure.js'

/** An execution that is over. Nothing in it holds a secret. */
export interface FinishedExecution {
  teamId: string
  toolId: string
  toolName: string
  versionNumber: number
  /** Null: asked for by number. */
  alias: string | null
  traceId: string
  spanId: string
  parentSpanId: string | null
  startedAtMs: number
  durationMs: number
  /** Null: there was no response. */
  httpStatus: number | null
  failures: readonly ToolFailure[]
  warnings: readonly string[]
  args: unknown
  result: unknown
}

/** The team's settings for what spans may hold. */
export interface CaptureRules {
  capturePayloads: boolean
  redactKeys: readonly string[]
}

/**
 * Records an execution: its span, in the caller's trace, and its row for the analytics, in one transaction.
 *
 * Failure stance: open. The tool has been called; that it cannot be recorded is logged and does not take the answer away,
 * or callers would call the tool again.
 */
export async function recordExecution(
  deps: Pick<Deps, 'sql' | 'log' | 'now'>,
  execution: FinishedExecution,
  rules: CaptureRules,
): Promise<void> {
  const { teamId, toolId, spanId, versionNumber, durationMs, startedAtMs } = execution
  const [reported] = execution.failures
  const errorType = reported?.type ?? null
  const errorCode = reported?.code ?? null
  const startedAt = new Date(startedAtMs)
  try {
    await inTransaction(deps.sql, async tx => {
      // A trace that another team took meanwhile: the span goes to one of its own team's.
      const outcome = { repeated: 'keep', foreign: 'derive' } as const
      await writeSpans(tx, [spanOf(execution, rules)], deps.now(), outcome)
      await insertExecution(tx, {
        teamId,
        toolId,
        startedAt,
        spanId,
        versionNumber,
        durationMs,
        errorType,
        errorCode,
      })
    })
  } catch (error) {
    deps.log.error({ err: error, toolId, spanId }, 'a tool execution could not be recorded')
  }
}

function spanOf(execution: FinishedExecution, { capturePayloads, redactKeys }: CaptureRules): SpanWrite {
  const hidden = hiddenKeys(redactKeys)
  const keep = (value: unknown) => storable(clean(value), hidden)
  const [reported] = execution.failures
  const attributes = attributesOf(execution)
  return {
    teamId: execution.teamId,
    trace: { id: execution.traceId, name: null, nameSource: null, sessionId: null, tags: [], metadata: null },
    spanId: execution.spanId,
    parentSpanId: execution.parentSpanId,
    name: execution.toolName,
    kind: 'tool',
    status: reported === undefined ? 'ok' : 'error',
    startTimeMs: execution.startedAtMs,
    endTimeMs: execution.startedAtMs + execution.durationMs,
    model: null,
    provider: null,
    promptTokens: null,
    completionTokens: null,
    totalTokens: null,
    costNano: null,
    promptVersionId: null,
    errorType: reported?.type ?? null,
    errorCode: reported?.code ?? null,
    hasWarning: hasWarning(attributes),
    attributes: keep(attributes),
    input: capturePayloads ? keep(execution.args) : null,
    output: capturePayloads ? keep(execution.result) : null,
    variables: null,
  }
}

function attributesOf(execution: FinishedExecution): Record<string, unknown> {
  const { failures, warnings, alias, httpStatus } = execution
  const [reported, ...others] = failures
  return {
    toolId: execution.toolId,
    toolName: execution.toolName,
    toolVersion: execution.versionNumber,
    ...(alias !== null && { alias }),
    ...(httpStatus !== null && { httpStatus }),
    ...(reported !== undefined && { errorMessage: reported.message }),
    ...(others.length > 0 && { alsoDetected: others }),
    ...(warnings.length > 0 && { warnings }),
  }
}
