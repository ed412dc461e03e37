import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import * as contract from '../../shared/contract/teams.js'
import { notFound } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { createInvite } from './invites.js'
import { changeRole, removeMember } from './members.js'
import {
  deletePendingInvite,
  findTeamById,
  listMembers,
  listPendingInvites,
  type MemberRow,
  renameTeam,
  type TeamRow,
} from './queries.js'

/** The team, its members and invites (spec 4, section 3). */
export function registerTeams(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.getTeam, async ({ principal, params }) => {
    const team = await findTeamById(deps.sql, ownTeam(principal, params.id))
    if (team === null) throw notFound('Team')
    return teamBody(team)
  })

  route(app, deps, contract.updateTeam, async ({ principal, params, body }) => {
    const teamId = ownTeam(principal, params.id)
    const team = await inTransaction(deps.sql, tx => renameTeam(tx, teamId, body.name))
    if (team === null) throw notFound('Team')
    return teamBody(team)
  })

  registerMembers(app, deps)
  registerInvites(app, deps)
}

function registerMembers(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.listMembers, async ({ principal, params }) => {
    const members = await listMembers(deps.sql, ownTeam(principal, params.id))
    return { data: members.map(memberBody) }
  })

  route(app, deps, contract.updateMember, async ({ principal, params, body }) => {
    ownTeam(principal, params.id)
    return memberBody(await changeRole(deps, principal, memberId(params.userId), body.role))
  })

  route(app, deps, contract.removeMember, async ({ principal, params }) => {
    ownTeam(principal, params.id)
    await removeMember(deps, principal, memberId(params.userId))
  })
}

function registerInvites(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.createInvite, async ({ principal, params, body }) => {
    ownTeam(principal, params.id)
    const invite = await createInvite(deps, principal, body)
    return { ...invite, expiresAt: invite.expiresAt.toISOString() }
  })

  route(app, deps, contract.listInvites, async ({ principal, params }) => {
    const invites = await listPendingInvites(deps.sql, ownTeam(principal, params.id), new Date(deps.now()))
    return invites.map(invite => ({
      ...invite,
      createdAt: invite.createdAt.toISOString(),
      expiresAt: invite.expiresAt.toISOString(),
    }))
  })

  route(app, deps, contract.deleteInvite, async ({ principal, params }) => {
    const teamId = ownTeam(principal, params.id)
    const isDeleted =
      isUuid(params.inviteId) && (await deletePendingInvite(deps.sql, teamId, params.inviteId))
    if (!isDeleted) throw notFound('Invite')
  })
}

/** A credential acts in one team; any other id, one of the person's other teams included, is unknown here. */
function ownTeam(principal: Principal, teamId: string): string {
  if (teamId.toLowerCase() !== principal.teamId) throw notFound('Team')
  return principal.teamId
}

function memberId(userId: string): string {
  if (!isUuid(userId)) throw notFound('Member')
  return userId.toLowerCase()
}

const teamBody = (team: TeamRow) => ({ ...team, createdAt: team.createdAt.toISOString() })

const memberBody = (member: MemberRow) => ({ ...member, joinedAt: member.joinedAt.toISOString() })
