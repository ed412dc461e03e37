import type { Role } from '../../shared/contract/common.js'
import type { Sql } from '../db/sql.js'

export interface TeamRow {
  id: string
  name: string
  createdAt: Date
}

export async function findTeamById(sql: Sql, teamId: string): Promise<TeamRow | null> {
  const [row] = await sql<TeamRow[]>`select id, name, created_at from teams where id = ${teamId}`
  return row ?? null
}

export async function updateTeamName(tx: Sql, teamId: string, name: string): Promise<void> {
  await tx`update teams set name = ${name} where id = ${teamId}`
}

/** Orders a writer of a team among the others and among its changes (`changeTeam`), until the transaction ends. */
export async function lockTeam(tx: Sql, teamId: string): Promise<void> {
  await tx`select 1 from teams where id = ${teamId} for no key update`
}

export interface MemberRow {
  userId: string
  email: string
  name: string | null
  role: Role
  joinedAt: Date
}

export async function listMembers(sql: Sql, teamId: string): Promise<MemberRow[]> {
  return await sql<MemberRow[]>`
    select m.user_id, u.email, u.name, m.role, m.joined_at
    from members m join users u on u.id = m.user_id
    where m.team_id = ${teamId} order by m.joined_at, m.user_id`
}

export async function findMember(sql: Sql, teamId: string, userId: string): Promise<MemberRow | null> {
  const [row] = await sql<MemberRow[]>`
    select m.user_id, u.email, u.name, m.role, m.joined_at
    from members m join users u on u.id = m.user_id
    where m.team_id = ${teamId} and m.user_id = ${userId}`
  return row ?? null
}

export async function findMemberByEmail(sql: Sql, teamId: string, email: string): Promise<MemberRow | null> {
  const [row] = await sql<MemberRow[]>`
    select m.user_id, u.email, u.name, m.role, m.joined_at
    from members m join users u on u.id = m.user_id
    where m.team_id = ${teamId} and u.email = ${email}`
  return row ?? null
}

export async function countOwners(tx: Sql, teamId: string): Promise<number> {
  const [row] = await tx<{ owners: number }[]>`
    select count(*)::int as owners from members where team_id = ${teamId} and role = 'owner'`
  return row?.owners ?? 0
}

export async function updateMemberRole(tx: Sql, teamId: string, userId: string, role: Role): Promise<void> {
  await tx`update members set role = ${role} where team_id = ${teamId} and user_id = ${userId}`
}

export async function deleteMember(tx: Sql, teamId: string, userId: string): Promise<void> {
  await tx`delete from members where team_id = ${teamId} and user_id = ${userId}`
}

/** @returns the ids of the sessions that the person had in the team. */
export async function deleteSessionsOfMember(tx: Sql, teamId: string, userId: string): Promise<string[]> {
  const rows = await tx<{ id: string }[]>`
    delete from sessions where team_id = ${teamId} and user_id = ${userId} returning id`
  return rows.map(row => row.id)
}

export interface InviteRow {
  id: string
  email: string
  role: Role
  createdAt: Date
  expiresAt: Date
}

export async function insertInvite(
  tx: Sql,
  invite: InviteRow & { teamId: string; tokenHash: string; invitedBy: string },
): Promise<void> {
  await tx`insert into invites ${tx({ ...invite })}`
}

/** A new invite to the same address takes the place of the pending one: its link and role are the ones that count. */
export async function deletePendingInvitesTo(tx: Sql, teamId: string, email: string): Promise<void> {
  await tx`delete from invites where team_id = ${teamId} and email = ${email} and accepted_at is null`
}

/** Withdraws the pending invites that a person sent to any but these roles. */
export async function deletePendingInvitesBy(
  tx: Sql,
  teamId: string,
  userId: string,
  except: readonly Role[],
): Promise<void> {
  await tx`
    delete from invites where team_id = ${teamId} and invited_by = ${userId} and accepted_at is null
      and role <> all(${[...except]}::text[])`
}

export async function listPendingInvites(sql: Sql, teamId: string, now: Date): Promise<InviteRow[]> {
  return await sql<InviteRow[]>`
    select id, email, role, created_at, expires_at from invites
    where team_id = ${teamId} and accepted_at is null and expires_at > ${now}
    order by created_at desc, id`
}

export async function deletePendingInvite(tx: Sql, teamId: string, inviteId: string): Promise<boolean> {
  const rows = await tx`
    delete from invites where team_id = ${teamId} and id = ${inviteId} and accepted_at is null returning id`
  return rows.length === 1
}
