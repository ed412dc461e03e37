import type { Answer } from '../../shared/contract/endpoint.js'
import type { toolAnalytics } from '../../shared/contract/tool-execution.js'
import { validation } from '../../shared/errors/app-error.js'
import { inSnapshot } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { defaultFromMs } from '../traces/window.js'
import { type ExecutionFigures, executionErrors, executionFigures } from './analytics-queries.js'
import { requireTool } from './change-tool.js'

/**
 * How a tool's executions went (spec 4, section 6), by their start times; both ends are inclusive.
 *
 * @param window epoch milliseconds; `to` left out is now, `from` left out is 30 days before `to`, or before now when `to` lies ahead.
 * @throws AppError NOT_FOUND `Tool not found.`; VALIDATION_ERROR for a window that ends before it starts.
 */
export async function analyseTool(
  deps: Pick<Deps, 'sql' | 'now'>,
  teamId: string,
  id: string,
  window: { from?: number | undefined; to?: number | undefined },
): Promise<Answer<typeof toolAnalytics>> {
  const nowMs = deps.now()
  const toMs = window.to ?? nowMs
  const from = new Date(window.from ?? defaultFromMs(toMs, nowMs))
  const to = new Date(toMs)
  if (from > to) throw validation('from must not be after to.')
  return inSnapshot(deps.sql, async tx => {
    const tool = await requireTool(tx, teamId, id)
    const [all, ...versions] = await executionFigures(tx, teamId, tool.id, { from, to })
    const errors = await executionErrors(tx, teamId, tool.id, { from, to })
    return {
      from: from.toISOString(),
      to: to.toISOString(),
      ...figuresOf(all),
      byVersion: versions.map(row => ({ versionNumber: row.versionNumber ?? 0, ...figuresOf(row) })),
      byErrorType: errors.flatMap(({ errorType: type, count }) => (type === null ? [] : [{ type, count }])),
      byErrorCode: errors.flatMap(({ errorCode: code, count }) => (code === null ? [] : [{ code, count }])),
    }
  })
}

function figuresOf(row: ExecutionFigures | undefined) {
  const calls = row?.calls ?? 0
  const [p50 = null, p95 = null, p99 = null] = row?.percentiles ?? []
  return { calls, errorRate: calls === 0 ? 0 : (row?.errors ?? 0) / calls, latencyMs: { p50, p95, p99 } }
}
