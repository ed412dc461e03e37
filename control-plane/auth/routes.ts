import type { FastifyInstance, FastifyRequest } from 'fastify'
import * as contract from '../../shared/contract/auth.js'
import { notFound } from '../../shared/errors/app-error.js'
import { crossSite, signedInSession } from '../access/credentials.js'
import type { Principal } from '../access/principal.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { clientAddress, isForeignPage } from '../http/origin.js'
import { route } from '../http/route.js'
import { acceptInvite } from './accept-invite.js'
import { deleteSession, findTeamName, findUserById, listTeamsOfUser, moveSession } from './queries.js'
import { clearSessionCookie, setSessionCookie } from './session.js'
import { signIn } from './sign-in.js'
import { signUp } from './sign-up.js'

/** Sign-up, sign-in, sessions and accepting an invite (spec 4, section 3). */
export function registerAuth(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.signUp, async ({ body, request, reply }) => {
    refuseForeignPage(deps, request)
    const { user, team, token } = await signUp(deps, body)
    setSessionCookie(reply, deps.config, token)
    return { user, team }
  })

  route(app, deps, contract.signIn, async ({ body, request, reply }) => {
    refuseForeignPage(deps, request)
    const address = clientAddress(request, deps.config)
    const { user, team, teams, token } = await signIn(deps, { ...body, address })
    setSessionCookie(reply, deps.config, token)
    return { user, team, teams }
  })

  route(app, deps, contract.signOut, async ({ principal, reply }) => {
    await endSession(deps, principal)
    clearSessionCookie(reply, deps.config)
  })

  route(app, deps, contract.getMe, ({ principal }) => whoAmI(deps, principal))

  route(app, deps, contract.switchTeam, async ({ principal, body }) => {
    const teamId = body.teamId.toLowerCase()
    const teams = await listTeamsOfUser(deps.sql, principal.userId ?? '')
    const target = teams.find(team => team.id === teamId)
    if (target === undefined) throw notFound('Team')
    if (target.id === principal.teamId) return whoAmI(deps, principal)
    // Proxies know the session as one of the team that is left; its epoch moves, so they look the session up again.
    await changeTeam(deps, principal.teamId, tx => moveSession(tx, principal.credentialId, target.id))
    return whoAmI(deps, { ...principal, teamId: target.id, role: target.role })
  })

  route(app, deps, contract.acceptInvite, async ({ params, body, request, reply }) => {
    refuseForeignPage(deps, request)
    const session = await signedInSession(request, deps)
    const address = clientAddress(request, deps.config)
    const { user, team, token } = await acceptInvite(deps, { ...body, token: params.token, session, address })
    setSessionCookie(reply, deps.config, token)
    return { user, team }
  })
}

/**
 * A form on another site could sign its visitor in to an account of its author, who then reads along: what the visitor
 * stores from there on, a provider's key perhaps, is the author's.
 *
 * @throws AppError FORBIDDEN.
 */
function refuseForeignPage({ config }: Deps, request: FastifyRequest): void {
  if (isForeignPage(request, config)) throw crossSite()
}

/** It is refused at once, on every proxy too. */
const endSession = (deps: Deps, { teamId, credentialId }: Principal): Promise<void> =>
  changeTeam(deps, teamId, tx => deleteSession(tx, credentialId), { revokedIds: [credentialId] })

async function whoAmI(deps: Deps, principal: Principal) {
  const { userId, teamId, role, via } = principal
  if (userId === null) {
    const team = { id: teamId, name: (await findTeamName(deps.sql, teamId)) ?? '', role: null }
    return { user: null, team, teams: [team], via: 'team_api_key' as const }
  }
  const [user, teams] = await Promise.all([findUserById(deps.sql, userId), listTeamsOfUser(deps.sql, userId)])
  const team = teams.find(candidate => candidate.id === teamId)
  if (user === null || team === undefined) throw notFound('Team')
  return {
    user,
    team: { ...team, role: role ?? team.role },
    teams,
    via: via === 'session' ? ('session' as const) : ('api_key' as const),
  }
}
