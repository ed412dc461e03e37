import type { Sql } from '../db/sql.js'

/** Days are UTC dates, `YYYY-MM-DD`; a week is the seven from `start` on. */
export interface DigestTeam {
  teamId: string
  teamName: string
}

/** Teams that made calls in a week and have no digest of it yet, a page after the last one. */
export async function listDigestTeams(
  sql: Sql,
  week: { start: string; end: string },
  after: string | null,
  limit: number,
): Promise<DigestTeam[]> {
  const nil = '00000000-0000-0000-0000-000000000000'
  return sql<DigestTeam[]>`
    select t.id as team_id, t.name as team_name from teams t
    where t.id > ${after ?? nil}
      and exists (
        select from spend_by_day s where s.team_id = t.id and s.day >= ${week.start} and s.day < ${week.end})
      and not exists (select from weekly_digests d where d.team_id = t.id and d.week_start = ${week.start})
    order by t.id limit ${limit}`
}

/** @returns false: another process sends this one. */
export async function insertDigest(tx: Sql, teamId: string, weekStart: string, at: Date): Promise<boolean> {
  const result = await tx`
    insert into weekly_digests (team_id, week_start, sent_at) values (${teamId}, ${weekStart}, ${at})
    on conflict do nothing`
  return result.count === 1
}

export interface Usage {
  requests: number
  costNano: number
}

export async function sumUsage(sql: Sql, teamId: string, from: string, until: string): Promise<Usage> {
  const [row] = await sql<Usage[]>`
    select coalesce(sum(requests), 0)::double precision as requests,
      coalesce(sum(cost_nano), 0)::double precision as cost_nano
    from spend_by_day where team_id = ${teamId} and day >= ${from} and day < ${until}`
  return row ?? { requests: 0, costNano: 0 }
}

/** The models that cost most, dearest first. */
export async function listTopModels(
  sql: Sql,
  teamId: string,
  from: Date,
  until: Date,
  limit: number,
): Promise<(Usage & { model: string })[]> {
  return sql<(Usage & { model: string })[]>`
    select model, count(*)::double precision as requests, sum(cost_nano)::double precision as cost_nano
    from charges where team_id = ${teamId} and admitted_at >= ${from} and admitted_at < ${until}
    group by model order by sum(cost_nano) desc, count(*) desc, model limit ${limit}`
}
