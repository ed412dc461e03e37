import type { Role } from '../../shared/contract/common.js'
import type { Sql } from '../db/sql.js'

export interface UserRow {
  id: string
  email: string
  name: string | null
}

export interface TeamOfUser {
  id: string
  name: string
  role: Role
}

/** Everybody who asks whether somebody is the first user waits here for the one who asked before. */
const FIRST_USER_LOCK = 720_430_002

export async function lockFirstUser(tx: Sql): Promise<void> {
  await tx`select pg_advisory_xact_lock(${FIRST_USER_LOCK})`
}

export async function hasUsers(sql: Sql): Promise<boolean> {
  const [row] = await sql<{ found: boolean }[]>`select exists (select 1 from users) as found`
  return row?.found === true
}

/** @returns false when the address is taken. */
export async function insertUser(
  tx: Sql,
  user: { id: string; email: string; name: string | null; passwordHash: string; createdAt: Date },
): Promise<boolean> {
  const rows = await tx`insert into users ${tx(user)} on conflict (email) do nothing returning id`
  return rows.length === 1
}

export async function insertTeam(
  tx: Sql,
  team: { id: string; name: string; createdAt: Date },
): Promise<void> {
  await tx`insert into teams ${tx(team)}`
}

/** @returns false when the person is a member already. */
export async function insertMember(
  tx: Sql,
  member: { teamId: string; userId: string; role: Role; joinedAt: Date },
): Promise<boolean> {
  const rows = await tx`insert into members ${tx(member)} on conflict do nothing returning user_id`
  return rows.length === 1
}

export async function findUserByEmail(
  sql: Sql,
  email: string,
): Promise<(UserRow & { passwordHash: string }) | null> {
  const [row] = await sql<(UserRow & { passwordHash: string })[]>`
    select id, email, name, password_hash from users where email = ${email}`
  return row ?? null
}

export async function findUserById(sql: Sql, userId: string): Promise<UserRow | null> {
  const [row] = await sql<UserRow[]>`select id, email, name from users where id = ${userId}`
  return row ?? null
}

/** The teams of a person, the one joined first in front. */
export async function listTeamsOfUser(sql: Sql, userId: string): Promise<TeamOfUser[]> {
  return await sql<TeamOfUser[]>`
    select t.id, t.name, m.role from members m join teams t on t.id = m.team_id
    where m.user_id = ${userId} order by m.joined_at, t.id`
}

export async function findTeamName(sql: Sql, teamId: string): Promise<string | null> {
  const [row] = await sql<{ name: string }[]>`select name from teams where id = ${teamId}`
  return row?.name ?? null
}

/** The team of the person's newest session: where they worked last. */
export async function findLatestTeamId(sql: Sql, userId: string): Promise<string | null> {
  const [row] = await sql<{ teamId: string }[]>`
    select team_id from sessions where user_id = ${userId} order by created_at desc limit 1`
  return row?.teamId ?? null
}

export async function insertSession(
  tx: Sql,
  session: {
    id: string
    tokenHash: string
    userId: string
    teamId: string
    createdAt: Date
    expiresAt: Date
  },
): Promise<void> {
  await tx`insert into sessions ${tx(session)}`
}

/** Its cookie acts in another team from now on. */
export async function moveSession(tx: Sql, sessionId: string, teamId: string): Promise<void> {
  await tx`update sessions set team_id = ${teamId} where id = ${sessionId}`
}

export async function deleteSession(tx: Sql, sessionId: string): Promise<void> {
  await tx`delete from sessions where id = ${sessionId}`
}

/** Counts an attempt as failed until it is known to be good, so that parallel guesses see each other. */
export async function insertSignInAttempt(
  sql: Sql,
  attempt: { account: string; address: string; at: Date },
): Promise<string> {
  const [row] = await sql<{ id: string }[]>`
    insert into sign_in_attempts ${sql({ ...attempt, failed: true })} returning id`
  return row!.id
}

export async function forgiveSignInAttempt(sql: Sql, attemptId: string): Promise<void> {
  await sql`update sign_in_attempts set failed = false where id = ${attemptId}`
}

export async function deleteSignInAttempt(sql: Sql, attemptId: string): Promise<void> {
  await sql`delete from sign_in_attempts where id = ${attemptId}`
}

/** When the `nth` newest failure of an account since an instant happened, other than this attempt; null: fewer. */
export async function findNthFailure(
  sql: Sql,
  account: string,
  since: Date,
  nth: number,
  attemptId: string,
): Promise<Date | null> {
  const [row] = await sql<{ at: Date }[]>`
    select at from sign_in_attempts
    where account = ${account} and at > ${since} and failed and id <> ${attemptId}
    order by at desc offset ${nth - 1} limit 1`
  return row?.at ?? null
}

/** As `findNthFailure`, for every attempt from an address. */
export async function findNthAttemptFrom(
  sql: Sql,
  address: string,
  since: Date,
  nth: number,
  attemptId: string,
): Promise<Date | null> {
  const [row] = await sql<{ at: Date }[]>`
    select at from sign_in_attempts
    where address = ${address} and at > ${since} and id <> ${attemptId}
    order by at desc offset ${nth - 1} limit 1`
  return row?.at ?? null
}

export interface PendingInvite {
  id: string
  teamId: string
  email: string
  role: Role
}

/** A pending invite, locked: it can be accepted once. */
export async function lockInviteByHash(tx: Sql, tokenHash: string, now: Date): Promise<PendingInvite | null> {
  const [row] = await tx<PendingInvite[]>`
    select id, team_id, email, role from invites
    where token_hash = ${tokenHash} and accepted_at is null and expires_at > ${now} for update`
  return row ?? null
}

export async function findInviteByHash(
  sql: Sql,
  tokenHash: string,
  now: Date,
): Promise<PendingInvite | null> {
  const [row] = await sql<PendingInvite[]>`
    select id, team_id, email, role from invites
    where token_hash = ${tokenHash} and accepted_at is null and expires_at > ${now}`
  return row ?? null
}

export async function markInviteAccepted(tx: Sql, inviteId: string, at: Date): Promise<void> {
  await tx`update invites set accepted_at = ${at} where id = ${inviteId}`
}

/**
 * Removes what has run out: sessions, sign-in attempts older than any window, invites nobody accepted for a month, and
 * jobs that were given up a week ago, as mails to an address that no server takes; the queue itself keeps them for ever.
 */
export async function deleteExpired(sql: Sql, now: Date): Promise<void> {
  const daysAgo = (days: number) => new Date(now.getTime() - days * 86_400_000)
  await sql`delete from sessions where expires_at < ${now}`
  await sql`delete from sign_in_attempts where at < ${daysAgo(1)}`
  await sql`delete from invites where accepted_at is null and expires_at < ${daysAgo(30)}`
  await sql`select 1 from graphile_worker.complete_jobs(array(
    select id from graphile_worker.jobs
    where attempts >= max_attempts and locked_at is null and updated_at < ${daysAgo(7)}))`
}
