import { notFound } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { findTeamById, lockTeam, type TeamRow, updateTeamName } from './queries.js'

/** @throws AppError NOT_FOUND. */
export async function renameTeam(deps: Deps, actor: Principal, name: string): Promise<TeamRow> {
  return inTransaction(deps.sql, async tx => {
    await lockTeam(tx, actor.teamId)
    const stored = await findTeamById(tx, actor.teamId)
    if (stored === null) throw notFound('Team')
    if (stored.name === name) return stored
    await updateTeamName(tx, actor.teamId, name)
    await record(tx, actor, deps.now(), 'team_renamed', { from: stored.name, to: name })
    return { ...stored, name }
  })
}
