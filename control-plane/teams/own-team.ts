import { notFound } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'

/**
 * A credential acts in one team; any other id, one of the person's other teams included, is unknown here.
 *
 * @throws AppError NOT_FOUND `Team not found.`
 */
export function ownTeam(principal: Principal, teamId: string): string {
  if (teamId.toLowerCase() !== principal.teamId) throw notFound('Team')
  return principal.teamId
}
