import type { DirectoryAnswer } from '../../shared/directory/records.js'
import { unavailable } from '../../shared/errors/app-error.js'
import type { Logger } from '../../shared/log/logger.js'
import { createRecentMap } from '../../shared/memory/recent-map.js'
import type { Vault } from '../../shared/secrets/vault.js'
import { ControlPlaneAway, type ControlPlaneClient } from '../control-plane-client.js'
import type { ProxyMetrics } from '../metrics.js'
import { createReferences, type FoundReferences, type Wanted } from './references.js'
import { buildTeam, type DirectoryEntry, directoryEntry, type Team } from './team.js'
import { createTraceOwners, type TraceOwner } from './trace-owners.js'

export type { DirectoryEntry, Team, TeamConnection, TeamModel } from './team.js'

/** What `find` is told when the ledger could not say which epoch is current. */
export const EPOCH_UNKNOWN = 0

export interface CredentialHash {
  kind: 'key' | 'session'
  /** SHA-256, hex. */
  hash: string
}

/** The proxy's memory of credentials and teams, filled from the control plane (design D5). */
export interface Directory {
  /**
   * A credential and its team: from memory without waiting, else from the control plane. Null: no such credential.
   *
   * @param announcedEpoch the team's epoch as the ledger just told it. Newer than what is cached: reloaded before the
   *   answer. Older, or EPOCH_UNKNOWN: the ledger forgot or is away, so what is cached is checked with the control
   *   plane at most once a second, while that can be reached.
   * @throws AppError UNAVAILABLE when it must load and cannot.
   */
  find(
    credential: CredentialHash,
    announcedEpoch?: number,
  ): DirectoryEntry | null | Promise<DirectoryEntry | null>
  /** What a call names of its team's prompts and tools. @throws ControlPlaneAway when it must ask and cannot. */
  stored(team: Team, wanted: Wanted): FoundReferences | Promise<FoundReferences>
  /** Whose trace an id names. `unknown` also when the control plane is away: ingestion checks again. */
  traceOwner(teamId: string, traceId: string): Promise<TraceOwner>
  /** Has the control plane fill the ledger's empty counters. @throws AppError UNAVAILABLE */
  seed(teamId: string): Promise<void>
  /** After a ledger outage: everything cached is loaded anew before use. */
  dropAll(): void
}

export interface DirectoryOptions {
  client: Pick<ControlPlaneClient, 'lookUp' | 'lookUpReferences' | 'traceOwner' | 'seed'>
  vault: Vault
  metrics: ProxyMetrics
  log: Logger
  bounds?: { credentials: number; teams: number; unknown: number; loads: number }
}

/** About 1 KB a credential; teams are shared by theirs. */
const BOUNDS = { credentials: 50_000, teams: 5_000, unknown: 20_000, loads: 512 }
/** A credential that does not exist is not asked for again this long. */
const UNKNOWN_FOR_MS = 2_000
/** Without a word from the ledger, what is cached is checked this often. */
const UNVERIFIED_FOR_MS = 1_000
/** ... and a call does not wait longer for it than this when there is a copy to go on with. */
const VERIFY_WAIT_MS = 250
/** Behind a hit, so that a session's end and the like are noticed although no epoch moves. */
const REFRESH_MS = 60_000

interface Known {
  entry: DirectoryEntry
  /** When the control plane was last asked about it. */
  askedAtMs: number
}

interface Load {
  promise: Promise<DirectoryEntry | null>
}

/**
 * Failure stance: what is cached goes on serving while the control plane is away, as long as the ledger announces
 * nothing newer (design D5); what is unknown or known to be outdated is refused with UNAVAILABLE.
 */
export function createDirectory(options: DirectoryOptions): Directory {
  const { client, vault, metrics, log, bounds = BOUNDS } = options
  // Apart by kind: a key presented as a cookie must not find the key's entry.
  const known = {
    key: createRecentMap<Known>(bounds.credentials),
    session: createRecentMap<Known>(bounds.credentials),
  }
  const unknownUntil = createRecentMap<number>(bounds.unknown)
  const teams = createRecentMap<Team>(bounds.teams)
  const loads = new Map<string, Load>()
  const teamLoads = new Map<string, Promise<unknown>>()
  const seeds = new Map<string, Promise<void>>()
  const references = createReferences(client)
  let generation = 0

  function find(credential: CredentialHash, announcedEpoch?: number) {
    const found = (credential.kind === 'key' ? known.key : known.session).get(credential.hash)
    const nowMs = performance.now()
    if (found === undefined) {
      const isUnknown = (unknownUntil.get(idOf(credential)) ?? 0) > nowMs
      return isUnknown ? null : orUnavailable(load(credential, announcedEpoch))
    }
    const { epoch } = found.entry.team
    if (announcedEpoch === undefined || announcedEpoch === epoch) {
      metrics.directoryHits.inc()
      if (nowMs - found.askedAtMs > REFRESH_MS) load(credential, announcedEpoch).catch(() => {})
      return found.entry
    }
    if (announcedEpoch > epoch) return orUnavailable(load(credential, announcedEpoch))
    return nowMs - found.askedAtMs > UNVERIFIED_FOR_MS
      ? verified(credential, found, announcedEpoch)
      : found.entry
  }

  /** Asks the control plane; without a quick answer what is known goes on serving. */
  async function verified(credential: CredentialHash, found: Known, announcedEpoch: number) {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<DirectoryEntry>(resolve => {
      timer = setTimeout(resolve, VERIFY_WAIT_MS, found.entry)
    })
    try {
      return await Promise.race([load(credential, announcedEpoch), late])
    } catch {
      metrics.directoryStale.inc()
      return found.entry
    } finally {
      clearTimeout(timer)
    }
  }

  /**
   * One load of a credential at a time. A load that began before this call may have missed what was announced to it:
   * then the next one is awaited or begun.
   */
  async function load(credential: CredentialHash, announcedEpoch?: number): Promise<DirectoryEntry | null> {
    const id = idOf(credential)
    const current = loads.get(id)
    if (current !== undefined) {
      const entry = await current.promise
      if (announcedEpoch === undefined || entry === null || entry.team.epoch >= announcedEpoch) return entry
      const next = loads.get(id)
      if (next !== undefined && next !== current) return next.promise
    }
    if (loads.size >= bounds.loads) throw new ControlPlaneAway('too many look-ups are under way')
    const promise = begin(credential, announcedEpoch)
    const mine = { promise }
    loads.set(id, mine)
    const done = () => loads.get(id) === mine && loads.delete(id)
    promise.then(done, done)
    return promise
  }

  async function begin(credential: CredentialHash, announcedEpoch?: number): Promise<DirectoryEntry | null> {
    const mine = known[credential.kind].get(credential.hash)
    if (mine === undefined) return ask(credential, announcedEpoch, undefined)
    mine.askedAtMs = performance.now()
    const { teamId } = mine.entry.team
    // Many keys of one team move at once: the first brings the team, the others wait for it and ask for themselves.
    const isTeamBehind = () => (announcedEpoch ?? 0) > (teams.get(teamId)?.epoch ?? -1)
    const other = isTeamBehind() ? teamLoads.get(teamId) : undefined
    // No await without need: the others of this turn must see this load.
    if (other !== undefined) await other.catch(() => {})
    const asked = ask(credential, announcedEpoch, teams.get(teamId) ?? mine.entry.team)
    if (isTeamBehind() && !teamLoads.has(teamId)) {
      teamLoads.set(teamId, asked)
      const done = () => teamLoads.get(teamId) === asked && teamLoads.delete(teamId)
      asked.then(done, done)
    }
    return asked
  }

  /** @param held the newest copy of the team here, if the credential is known: it need not travel again. */
  async function ask(credential: CredentialHash, announcedEpoch: number | undefined, held: Team | undefined) {
    const startedIn = generation
    const known = held && { knownEpoch: held.epoch, knownTeamId: held.teamId }
    const answer = await client.lookUp({ credential, ...known, announcedEpoch })
    metrics.directoryLoads.inc()
    const entry = entryOf(answer, held)
    if (startedIn === generation) remember(credential, entry)
    return entry
  }

  function entryOf(
    { credential, team: record }: DirectoryAnswer,
    held: Team | undefined,
  ): DirectoryEntry | null {
    if (credential === null) return null
    const team = record === null ? held : buildTeam(record, vault, keyStaysSealed)
    if (team === undefined || team.teamId !== credential.teamId) {
      throw new ControlPlaneAway('its answer lacks the team')
    }
    return directoryEntry(credential, team)
  }

  function remember(credential: CredentialHash, entry: DirectoryEntry | null): void {
    const nowMs = performance.now()
    if (entry === null) {
      known[credential.kind].delete(credential.hash)
      unknownUntil.set(idOf(credential), nowMs + UNKNOWN_FOR_MS)
      return
    }
    const { team } = entry
    if ((teams.get(team.teamId)?.epoch ?? -1) <= team.epoch) teams.set(team.teamId, team)
    known[credential.kind].set(credential.hash, { entry, askedAtMs: nowMs })
  }

  function keyStaysSealed(connectionId: string, error: unknown): void {
    log.error(
      { err: error, connectionId },
      'directory: a provider key does not open; was AGH_SECRET changed?',
    )
  }

  async function orUnavailable<T>(work: Promise<T>): Promise<T> {
    try {
      return await work
    } catch (error) {
      metrics.directoryFailures.inc()
      throw unavailable('The control plane cannot be reached; try again.', 1, error)
    }
  }

  function seed(teamId: string): Promise<void> {
    const current = seeds.get(teamId)
    if (current !== undefined) return current
    const mine = orUnavailable(client.seed(teamId)).finally(() => seeds.delete(teamId))
    seeds.set(teamId, mine)
    return mine
  }

  return {
    find,
    seed,
    stored: references.find,
    traceOwner: createTraceOwners(client, log),
    dropAll() {
      generation++
      known.key.clear()
      known.session.clear()
      unknownUntil.clear()
      teams.clear()
      references.clear()
      // Loads under way began before: nobody may join them, and nothing of them is kept.
      loads.clear()
      teamLoads.clear()
    },
  }
}

const idOf = ({ kind, hash }: CredentialHash) => `${kind}:${hash}`
