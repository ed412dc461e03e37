import { type Role, roles } from '../../shared/contract/common.js'
import { conflict, forbidden, notFound } from '../../shared/errors/app-error.js'
import { isManager } from '../access/policy.js'
import type { Principal } from '../access/principal.js'
import { revokePersonalKeys } from '../api-keys/queries.js'
import { record } from '../audit/record.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { mailRemoved, mailRoleChanged } from '../notifications/membership-mails.js'
import {
  countOwners,
  deleteMember,
  deletePendingInvitesBy,
  deleteSessionsOfMember,
  findMember,
  findTeamById,
  type MemberRow,
  updateMemberRole,
} from './queries.js'

const LAST_OWNER = 'A team needs at least one owner.'

/**
 * Gives a member another role; it holds for the next call of their keys and sessions (spec 4, sections 3 and 9), and for
 * the invites that they have sent: those that they could not send any more are withdrawn.
 *
 * @throws AppError NOT_FOUND for somebody who is no member, FORBIDDEN for what the actor may not give or take,
 *   CONFLICT for the last owner.
 */
export async function changeRole(
  deps: Deps,
  actor: Principal,
  userId: string,
  role: Role,
): Promise<MemberRow> {
  const { teamId } = actor
  return changeTeam(deps, teamId, async tx => {
    const member = await findMember(tx, teamId, userId)
    if (member === null) throw notFound('Member')
    checkMayGive(actor, role)
    checkMayManage(actor, member)
    if (member.role === 'owner' && role !== 'owner') await checkNotLastOwner(tx, teamId)
    if (member.role === role) return member
    await updateMemberRole(tx, teamId, userId, role)
    await deletePendingInvitesBy(tx, teamId, userId, rolesToGive(role))
    const change = { from: member.role, to: role }
    await record(tx, actor, deps.now(), 'member_role_updated', change, { targetId: userId })
    await mailRoleChanged(deps, tx, await named(tx, teamId), { userId, ...change })
    return { ...member, role }
  })
}

/**
 * Removes a member, or lets the actor leave: their keys in the team and their sessions in it stop at once, and so do the
 * invites that they have sent, one of which could be to themselves.
 *
 * @throws AppError as `changeRole`.
 */
export async function removeMember(deps: Deps, actor: Principal, userId: string): Promise<void> {
  const { teamId } = actor
  const isLeaving = userId === actor.userId
  if (!isLeaving && !isManager(actor)) throw forbidden()
  // Filled by the change, read after it.
  const revokedIds: string[] = []
  const remove = async (tx: Sql) => {
    const member = await findMember(tx, teamId, userId)
    if (member === null) throw notFound('Member')
    if (!isLeaving) checkMayManage(actor, member)
    if (member.role === 'owner') await checkNotLastOwner(tx, teamId)
    const revokedApiKeyIds = await revokePersonalKeys(tx, teamId, userId, new Date(deps.now()))
    revokedIds.push(...revokedApiKeyIds, ...(await deleteSessionsOfMember(tx, teamId, userId)))
    await deletePendingInvitesBy(tx, teamId, userId, [])
    await deleteMember(tx, teamId, userId)
    const removal = { role: member.role, revokedApiKeyIds }
    await record(tx, actor, deps.now(), 'member_removed', removal, { targetId: userId })
    await mailRemoved(deps, tx, await named(tx, teamId), member)
  }
  await changeTeam(deps, teamId, remove, { revokedIds })
}

/** An owner gives any role, an admin editor and viewer; the same for invites: nobody invites above what they may give. */
function rolesToGive(role: Role | null): readonly Role[] {
  if (role === 'owner') return roles
  return role === 'admin' ? ['editor', 'viewer'] : []
}

/** @throws AppError FORBIDDEN. */
export function checkMayGive(actor: { role: Role | null }, role: Role): void {
  if (!rolesToGive(actor.role).includes(role)) throw forbidden()
}

/** An admin cannot change or remove an owner or another admin. */
function checkMayManage(actor: Principal, member: MemberRow): void {
  if (actor.role === 'owner' || member.userId === actor.userId) return
  if (member.role === 'owner' || member.role === 'admin') throw forbidden()
}

const named = async (tx: Sql, teamId: string) => ({
  teamId,
  teamName: (await findTeamById(tx, teamId))?.name ?? '',
})

/** Of two at once the later one counts: `changeTeam` lets one after the other. */
async function checkNotLastOwner(tx: Sql, teamId: string): Promise<void> {
  if ((await countOwners(tx, teamId)) <= 1) throw conflict(LAST_OWNER)
}
