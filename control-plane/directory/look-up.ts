import { isUuid } from '../../shared/contract/common.js'
import type { DirectoryAnswer, TeamRecord } from '../../shared/directory/records.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { baseUrlOf } from '../gateway/connections/base-url.js'
import { settleAnnouncement } from '../gateway/publish.js'
import { readSnapshot, type Snapshot, type StoredTeam, type Subject } from './queries.js'

export interface Question {
  credential: { kind: 'key' | 'session'; hash: string } | null
  teamId?: string | undefined
  knownEpoch?: number | undefined
  knownTeamId?: string | undefined
  announcedEpoch?: number | undefined
}

/**
 * What a proxy needs to know about a credential and its team, as of the newest change that was announced.
 *
 * An announced epoch above the committed one means that a writer is about to commit, or that it rolled back after it
 * had announced: the team's row lock tells which, and an announcement without a commit is taken back, so that the
 * proxies do not ask for it for ever.
 */
export async function lookUp(deps: Deps, question: Question): Promise<DirectoryAnswer> {
  const subject = subjectOf(question)
  if (subject === null) return { credential: null, team: null }
  const { knownEpoch, knownTeamId = null } = question
  const known = knownEpoch === undefined ? null : { teamId: knownTeamId, epoch: knownEpoch }
  const now = new Date(deps.now())
  const first = await readSnapshot(deps.sql, subject, known, now)
  // What was announced was of the team that the proxy knows; a session may have moved to another one.
  const isOther = first !== null && knownTeamId !== null && first.teamId !== knownTeamId
  const announcedEpoch = isOther ? undefined : question.announcedEpoch
  if (first === null || announcedEpoch === undefined || first.epoch === announcedEpoch) return answer(first)
  if (first.epoch > announcedEpoch) {
    announceAgain(deps, first)
    return answer(first)
  }
  return inTransaction(deps.sql, async tx => {
    await settleAnnouncement(deps, tx, first.teamId, announcedEpoch)
    return answer(await readSnapshot(tx, subject, known, now))
  })
}

function subjectOf({ credential, teamId }: Question): Subject | null {
  if (credential !== null) return credential
  return teamId !== undefined && isUuid(teamId) ? { kind: 'team', teamId } : null
}

/**
 * The ledger is behind what is committed: it lost its data, or a change still waits in the outbox. The proxies that have
 * this team cached learn of it with their next call. Not awaited: a ledger that is away must not delay the answer.
 */
function announceAgain(deps: Deps, snapshot: Snapshot): void {
  deps.ledger.publish(snapshot.teamId, { epoch: snapshot.epoch }).catch(error => {
    deps.log.debug({ err: error, teamId: snapshot.teamId }, 'the ledger did not take an announcement')
  })
}

function answer(snapshot: Snapshot | null): DirectoryAnswer {
  if (snapshot === null) return { credential: null, team: null }
  const { credential, team } = snapshot
  return { credential, team: team === null ? null : teamRecord(snapshot, team) }
}

const teamRecord = (snapshot: Snapshot, team: StoredTeam): TeamRecord => ({
  teamId: snapshot.teamId,
  epoch: snapshot.epoch,
  ...team,
  connections: team.connections.map(({ config, ...connection }) => ({
    ...connection,
    baseUrl: baseUrlOf(connection.provider, config),
  })),
})
