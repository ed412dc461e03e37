import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import * as contract from '../../shared/contract/teams.js'
import { notFound } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { createInvite } from './invites.js'
import { changeRole, removeMember } from './members.js'
import { ownTeam } from './own-team.js'
import {
  deletePendingInvite,
  findTeamById,
  listMembers,
  listPendingInvites,
  type MemberRow,
  type TeamRow,
} from './queries.js'
import { renameTeam } from './rename-team.js'

/** The team, its members and invites (spec 4, section 3). */
export function registerTeams(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.getTeam, async ({ principal, params }) => {
    const team = await findTeamById(deps.sql, ownTeam(principal, params.id))
    if (team === null) throw notFound('Team')
    return teamBody(team)
  })

  route(app, deps, contract.updateTeam, async ({ principal, params, body }) => {
    ownTeam(principal, params.id)
    return teamBody(await renameTeam(deps, principal, body.name))
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

function memberId(userId: string): string {
  if (!isUuid(userId)) throw notFound('Member')
  return userId.toLowerCase()
}

const teamBody = (team: TeamRow) => ({ ...team, createdAt: team.createdAt.toISOString() })

const memberBody = (member: MemberRow) => ({ ...member, joinedAt: member.joinedAt.toISOString() })
