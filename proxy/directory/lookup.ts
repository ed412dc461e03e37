import type { DirectoryEntry } from './team.js'

export type { DirectoryEntry, Team, TeamConnection, TeamModel } from './team.js'

/** What `find` is told when the ledger could not say which epoch is current. */
export const EPOCH_UNKNOWN = 0

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
    credential: { kind: 'key' | 'session'; hash: string },
    announcedEpoch?: number,
  ): DirectoryEntry | null | Promise<DirectoryEntry | null>
  /** Whose trace an id names. `unknown` also when the control plane is away: ingestion checks again. */
  traceOwner(teamId: string, traceId: string): Promise<'own' | 'foreign' | 'unknown'>
  /** Has the control plane fill the ledger's empty counters. @throws AppError UNAVAILABLE */
  seed(teamId: string): Promise<void>
  /** After a ledger outage: everything cached is loaded anew before use. */
  dropAll(): void
}
