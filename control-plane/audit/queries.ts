import type { AuditEventName } from '../../shared/contract/audit.js'
import type { Sql } from '../db/sql.js'

export interface NewAuditEvent {
  teamId: string
  id: string
  event: AuditEventName
  actorId: string | null
  metadata: object
  promptId: string | null
  toolId: string | null
  targetId: string | null
  createdAt: Date
}

export async function insertAuditEvent(tx: Sql, row: NewAuditEvent): Promise<void> {
  await tx`
    insert into audit_events (team_id, id, event, actor_id, metadata, prompt_id, tool_id, target_id, created_at)
    values (${row.teamId}, ${row.id}, ${row.event}, ${row.actorId}, ${JSON.stringify(row.metadata)}::text::jsonb,
      ${row.promptId}, ${row.toolId}, ${row.targetId}, ${row.createdAt})`
}

/** A person as the user record has them: it outlives the membership. */
export interface AuditPerson {
  id: string
  email: string
  name: string | null
}

export interface AuditEventRow {
  id: string
  event: AuditEventName
  metadata: Record<string, unknown>
  promptId: string | null
  actor: AuditPerson | null
  target: AuditPerson | null
  createdAt: Date
}

/** AND-ed; one that is left out narrows nothing. */
export interface AuditFilter {
  promptId?: string | undefined
  toolId?: string | undefined
  events?: readonly AuditEventName[] | undefined
  actorId?: string | undefined
}

interface Page {
  limit: number
  offset: number
}

/** A page of a team's trail, newest first, and how many rows the filter leaves in all. */
export async function listAuditEvents(
  sql: Sql,
  teamId: string,
  filter: AuditFilter,
  page: Page,
): Promise<{ rows: AuditEventRow[]; total: number }> {
  const { promptId, toolId, events, actorId } = filter
  const where = sql`e.team_id = ${teamId}
    ${promptId === undefined ? sql`` : sql`and e.prompt_id = ${promptId}`}
    ${toolId === undefined ? sql`` : sql`and e.tool_id = ${toolId}`}
    ${events === undefined || events.length === 0 ? sql`` : sql`and e.event = any(${[...events]}::text[])`}
    ${actorId === undefined ? sql`` : sql`and e.actor_id = ${actorId}`}`
  const [rows, counts] = await Promise.all([
    sql<AuditEventRow[]>`
      select e.id, e.event, e.metadata, e.prompt_id, e.created_at,
        case when a.id is not null then json_build_object('id', a.id, 'email', a.email, 'name', a.name) end as actor,
        case when t.id is not null then json_build_object('id', t.id, 'email', t.email, 'name', t.name) end as target
      from (
        select * from audit_events e where ${where}
        order by e.created_at desc, e.position desc limit ${page.limit} offset ${page.offset}
      ) e left join users a on a.id = e.actor_id left join users t on t.id = e.target_id
      order by e.created_at desc, e.position desc`,
    sql<{ total: number }[]>`select count(*)::int as total from audit_events e where ${where}`,
  ])
  return { rows: [...rows], total: counts[0]?.total ?? 0 }
}

/** Everybody who acted, by email in code point order, whatever the database's collation is. */
export async function listAuditActors(
  sql: Sql,
  teamId: string,
): Promise<(AuditPerson & { eventCount: number })[]> {
  return sql<(AuditPerson & { eventCount: number })[]>`
    select u.id, u.email, u.name, e.event_count
    from (
      select actor_id, count(*)::int as event_count from audit_events
      where team_id = ${teamId} and actor_id is not null group by actor_id
    ) e join users u on u.id = e.actor_id
    order by u.email collate "C"`
}

/** Deleted ones answer like missing ones, as their own endpoints do (spec 1, soft delete). */
export async function hasActivePrompt(sql: Sql, teamId: string, promptId: string): Promise<boolean> {
  const rows = await sql`
    select 1 from prompts where team_id = ${teamId} and id = ${promptId} and deleted_at is null`
  return rows.length === 1
}

/** As `hasActivePrompt`. */
export async function hasActiveTool(sql: Sql, teamId: string, toolId: string): Promise<boolean> {
  const rows = await sql`
    select 1 from tools where team_id = ${teamId} and id = ${toolId} and deleted_at is null`
  return rows.length === 1
}
