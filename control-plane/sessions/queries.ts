import { containing } from '../db/like.js'
import type { Sql } from '../db/sql.js'
import { type Fragment, type StoredTrace, traceColumns } from '../traces/queries.js'

export interface StoredSession {
  sessionId: string
  traceCount: number
  totalCostNano: number
  totalTokens: number
  firstAt: Date
  lastAt: Date
}

const sessionColumns = (sql: Sql): Fragment => sql`
  s.session_id, s.trace_count::double precision, s.total_cost_nano::double precision,
  s.total_tokens::double precision, s.first_at, s.last_at`

export interface SessionQuestion {
  teamId: string
  /** Epoch milliseconds, of a trace's start, both inclusive. */
  bounds: { fromMs: number; toMs: number }
  /** Part of the session id; null: any. */
  q: string | null
}

/** One page of a team's sessions, newest activity first. */
export async function listSessionRows(
  sql: Sql,
  question: SessionQuestion,
  page: { limit: number; offset: number },
): Promise<StoredSession[]> {
  return sql<StoredSession[]>`
    select ${sessionColumns(sql)} from trace_sessions s where ${matches(sql, question)}
    order by s.last_at desc, s.session_id desc limit ${page.limit} offset ${page.offset}`
}

/** How many there are in all. */
export async function countSessions(sql: Sql, question: SessionQuestion): Promise<number> {
  const [row] = await sql<{ total: number }[]>`
    select count(*)::double precision as total from trace_sessions s where ${matches(sql, question)}`
  return row?.total ?? 0
}

function matches(sql: Sql, { teamId, bounds, q }: SessionQuestion): Fragment {
  const [from, to] = [new Date(bounds.fromMs), new Date(bounds.toMs)]
  const named = q === null ? sql`` : sql`and s.session_id ilike ${containing(q)}`
  // A session that reaches beyond both ends of the window may have no trace in it.
  return sql`s.team_id = ${teamId} and s.last_at >= ${from} and s.first_at <= ${to}
    and (s.last_at <= ${to} or s.first_at >= ${from} or exists (
      select from traces t where t.team_id = s.team_id and t.session_id = s.session_id
        and t.started_at >= ${from} and t.started_at <= ${to}))
    ${named}`
}

/** Null: no such session, or another team's. */
export async function findSession(
  sql: Sql,
  teamId: string,
  sessionId: string,
): Promise<StoredSession | null> {
  const [row] = await sql<StoredSession[]>`
    select ${sessionColumns(sql)} from trace_sessions s where s.team_id = ${teamId} and s.session_id = ${sessionId}`
  return row ?? null
}

/** The traces of a session that started last, newest first. */
export async function listTracesOfSession(
  sql: Sql,
  teamId: string,
  sessionId: string,
  limit: number,
): Promise<StoredTrace[]> {
  return sql<StoredTrace[]>`
    select ${traceColumns(sql)} from traces t where t.team_id = ${teamId} and t.session_id = ${sessionId}
    order by t.started_at desc, t.received_at desc, t.id desc limit ${limit}`
}
