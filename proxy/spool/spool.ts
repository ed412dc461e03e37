import type { CallRecord } from '../../shared/spool/record.js'

/** Where finished calls wait, on disk, until the control plane has committed them (design D6). */
export interface Spool {
  /**
   * Writes one record with one synchronous write: it survives the death of this process from the moment this returns.
   * Under disk pressure its payload is left out first, then its span, never its charge.
   *
   * @throws SpoolFull when not even the charge could be written.
   */
  append(record: CallRecord): void
  /** True while the disk is nearly full: refuse new calls with 503 before any provider works for them. */
  readonly full: boolean
  /** Bytes on disk that wait, this process's own and adopted ones. */
  readonly bytes: number
  /** Age of the oldest record that is not acknowledged; 0 when there is none. */
  readonly lagMs: number
  /** Ships what waits without the usual pause. Resolves when all of it is committed, or at the deadline: false. */
  flush(deadlineMs: number): Promise<boolean>
  /** Ships what can be shipped within the deadline (5 s unless given); the rest stays on disk for the next start. */
  close(deadlineMs?: number): Promise<void>
}

/** The disk took no more. */
export class SpoolFull extends Error {
  constructor(cause: unknown) {
    super('The spool cannot take another record.', { cause })
    this.name = 'SpoolFull'
  }
}
