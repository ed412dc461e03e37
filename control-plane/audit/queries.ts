import type { Sql } from '../db/sql.js'

export interface AuditEventRow {
  teamId: string
  id: string
  event: string
  actorId: string | null
  metadata: object
  promptId: string | null
  toolId: string | null
  targetId: string | null
  createdAt: Date
}

export async function insertAuditEvent(tx: Sql, row: AuditEventRow): Promise<void> {
  await tx`
    insert into audit_events (team_id, id, event, actor_id, metadata, prompt_id, tool_id, target_id, created_at)
    values (${row.teamId}, ${row.id}, ${row.event}, ${row.actorId}, ${JSON.stringify(row.metadata)}::text::jsonb,
      ${row.promptId}, ${row.toolId}, ${row.targetId}, ${row.createdAt})`
}
