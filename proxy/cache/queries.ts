import type { Sql } from 'postgres'

export async function findResponse(sql: Sql, key: string): Promise<string | null> {
  const [row] = await sql<{ value: string }[]>`
    select value from response_cache where key = ${key} and expires_at > clock_timestamp()`
  return row?.value ?? null
}

export async function upsertResponse(
  sql: Sql,
  key: string,
  value: string,
  ttlSeconds: number,
): Promise<void> {
  await sql`
    insert into response_cache (key, value, expires_at)
    values (${key}, ${value}, clock_timestamp() + make_interval(secs => ${ttlSeconds}))
    on conflict (key) do update set value = excluded.value, expires_at = excluded.expires_at`
}

/** Bounded, so that a sweep never holds locks for long. */
export async function deleteExpiredResponses(sql: Sql): Promise<void> {
  await sql`
    delete from response_cache
    where key in (select key from response_cache where expires_at <= clock_timestamp() limit 10000)`
}
