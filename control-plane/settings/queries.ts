import type { TraceSettings } from '../../shared/contract/settings.js'
import type { Sql } from '../db/sql.js'

const settingColumns = (sql: Sql) => sql`capture_payloads, redact_keys, retention_days`

/** Null: no such team. */
export async function findTraceSettings(sql: Sql, teamId: string): Promise<TraceSettings | null> {
  const [row] = await sql<TraceSettings[]>`select ${settingColumns(sql)} from teams where id = ${teamId}`
  return row ?? null
}

/** As `findTraceSettings`; they stay as they are until the transaction ends. */
export async function lockTraceSettings(tx: Sql, teamId: string): Promise<TraceSettings | null> {
  const [row] = await tx<TraceSettings[]>`
    select ${settingColumns(tx)} from teams where id = ${teamId} for no key update`
  return row ?? null
}

/** Changes what is given and keeps the rest. Null: no such team. */
export async function changeTraceSettings(
  tx: Sql,
  teamId: string,
  change: { [Name in keyof TraceSettings]?: TraceSettings[Name] | undefined },
): Promise<TraceSettings | null> {
  const [row] = await tx<TraceSettings[]>`
    update teams set
      capture_payloads = coalesce(${change.capturePayloads ?? null}::boolean, capture_payloads),
      redact_keys = coalesce(${change.redactKeys ?? null}::text[], redact_keys),
      retention_days = coalesce(${change.retentionDays ?? null}::integer, retention_days)
    where id = ${teamId}
    returning ${settingColumns(tx)}`
  return row ?? null
}
