import type { ErrorType } from '../../shared/contract/traces.js'
import type { Sql } from '../db/sql.js'

export interface ExecutionFigures {
  /** Null: all versions together. */
  versionNumber: number | null
  calls: number
  errors: number
  /** Milliseconds at 50, 95 and 99 percent; null without calls. */
  percentiles: number[] | null
}

/** Both ends are inclusive. */
export interface Window {
  from: Date
  to: Date
}

const within = (sql: Sql, teamId: string, toolId: string, { from, to }: Window) => sql`
  team_id = ${teamId} and tool_id = ${toolId} and started_at >= ${from} and started_at <= ${to}`

/** All executions of a tool in a window, then those of each version, newest first. */
export async function executionFigures(
  sql: Sql,
  teamId: string,
  toolId: string,
  window: Window,
): Promise<ExecutionFigures[]> {
  return sql<ExecutionFigures[]>`
    select version_number, count(*)::integer as calls, count(error_type)::integer as errors,
      array_to_json(percentile_cont(array[0.5, 0.95, 0.99]) within group (order by duration_ms)) as percentiles
    from tool_executions where ${within(sql, teamId, toolId, window)}
    group by grouping sets ((), (version_number))
    order by grouping(version_number) desc, version_number desc`
}

export interface ErrorCount {
  errorType: ErrorType | null
  errorCode: string | null
  count: number
}

/** How often each error type and each error code was reported, most frequent first; a row has one of the two. */
export async function executionErrors(
  sql: Sql,
  teamId: string,
  toolId: string,
  window: Window,
): Promise<ErrorCount[]> {
  return sql<ErrorCount[]>`
    select error_type, error_code, count(*)::integer as count
    from tool_executions where ${within(sql, teamId, toolId, window)} and error_type is not null
    group by grouping sets ((error_type), (error_code))
    having grouping(error_type) = 0 or error_code is not null
    order by count desc, error_type, error_code collate "C"
    limit 200`
}
