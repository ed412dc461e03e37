import type { Sql } from '../db/sql.js'

/** Moves a team's epoch; its row lock orders the writers of a team until they commit. @returns null: no such team. */
export async function moveEpoch(sql: Sql, teamId: string): Promise<number | null> {
  const [row] = await sql<{ epoch: string }[]>`
    update teams set epoch = epoch + 1 where id = ${teamId} returning epoch`
  return row === undefined ? null : Number(row.epoch)
}

/**
 * A team's committed epoch, once no writer of the team is about to commit: `for share` waits for their row lock, and
 * keeps the next one waiting until this transaction ends. Gives up after a second.
 */
export async function settledEpoch(sql: Sql, teamId: string): Promise<number | null> {
  await sql`set local lock_timeout = '1s'`
  const [row] = await sql<{ epoch: string }[]>`select epoch from teams where id = ${teamId} for share`
  return row === undefined ? null : Number(row.epoch)
}

export interface OutboxEntry {
  teamId: string
  epoch: number
  revokedIds: string[]
}

export async function insertOutboxEntry(sql: Sql, entry: OutboxEntry): Promise<void> {
  await sql`
    insert into ledger_outbox (team_id, epoch, revoked_ids)
    values (${entry.teamId}, ${entry.epoch}, ${entry.revokedIds})`
}

/** The oldest entries, at most 500. */
export async function listOutboxEntries(sql: Sql): Promise<OutboxEntry[]> {
  const rows = await sql<{ teamId: string; epoch: string; revokedIds: string[] }[]>`
    select team_id, epoch, revoked_ids from ledger_outbox order by recorded_at limit 500`
  return rows.map(row => ({ ...row, epoch: Number(row.epoch) }))
}

export async function deleteOutboxEntry(sql: Sql, teamId: string, epoch: number): Promise<void> {
  await sql`delete from ledger_outbox where team_id = ${teamId} and epoch = ${epoch}`
}
