import type { Executor } from '../../shared/contract/tools.js'
import type { ErrorType } from '../../shared/contract/traces.js'
import type { Sql } from '../db/sql.js'

/** All that an execution has to know before it starts. */
export interface ExecutableRow {
  name: string
  /** Null: the tool has no such alias or version; then the two below are null too. */
  versionNumber: number | null
  parametersSchema: Record<string, unknown> | null
  executor: Executor | null
  capturePayloads: boolean
  redactKeys: string[]
  /** Who holds the caller's trace id; null: nobody. */
  traceTeamId: string | null
}

/** An active tool with the version that an alias or number stands for; one statement. Null: no such tool. */
export async function findExecutable(
  sql: Sql,
  teamId: string,
  toolId: string,
  serve: { alias: string | null; versionNumber: number | null },
  traceId: string | null,
): Promise<ExecutableRow | null> {
  const [row] = await sql<ExecutableRow[]>`
    select t.name, v.version_number, v.parameters_schema, v.executor, teams.capture_payloads, teams.redact_keys,
      (select o.team_id from trace_owners o where o.id = ${traceId}::uuid) as trace_team_id
    from tools t
    join teams on teams.id = t.team_id
    left join tool_aliases a on a.team_id = t.team_id and a.tool_id = t.id and a.alias = ${serve.alias}
    left join tool_versions v on v.team_id = t.team_id and v.tool_id = t.id
      and (v.id = a.version_id or v.version_number = ${serve.versionNumber}::integer)
    where t.team_id = ${teamId} and t.id = ${toolId} and t.deleted_at is null`
  return row ?? null
}

export interface ExecutionRow {
  teamId: string
  toolId: string
  startedAt: Date
  spanId: string
  versionNumber: number
  durationMs: number
  errorType: ErrorType | null
  errorCode: string | null
}

export async function insertExecution(tx: Sql, row: ExecutionRow): Promise<void> {
  await tx`
    insert into tool_executions
      (team_id, tool_id, started_at, span_id, version_number, duration_ms, error_type, error_code)
    values (${row.teamId}, ${row.toolId}, ${row.startedAt}, ${row.spanId}, ${row.versionNumber},
      ${row.durationMs}, ${row.errorType}, ${row.errorCode})`
}

/** Executions that their team keeps no longer (`retentionDays`), some at a time. @returns how many went. */
export async function deleteExpiredExecutions(sql: Sql, now: Date, most: number): Promise<number> {
  const result = await sql`
    delete from tool_executions where ctid = any(array(
      select e.ctid from teams
      cross join lateral (
        select ctid from tool_executions
        where team_id = teams.id and started_at < ${now}::timestamptz - make_interval(days => teams.retention_days)
        order by started_at limit ${most}) e
      limit ${most}))`
  return result.count
}
