import type { Disk } from './disk.js'

/**
 * Group fdatasync against power loss: everything appended in 20 ms is made durable by one call on the thread pool, off
 * the hot path. The death of the process alone loses nothing without it: what was written is in the page cache.
 */
export interface Syncer {
  dirty(fd: number): void
  /** Runs `close` when no sync of the file is under way; it is not synced any more. */
  forget(fd: number, close: () => void): void
  /** Syncs what is dirty and stops. */
  close(): Promise<void>
}

const SYNC_MS = 20

/** @param onError a sync failed: what the file's cache held may be lost, and a second sync would not say so. */
export function createSyncer(disk: Disk, onError: (error: unknown) => void): Syncer {
  const dirty = new Set<number>()
  const closing = new Map<number, () => void>()
  const syncing = new Set<number>()
  let scheduled = false
  let current: Promise<void> = Promise.resolve()

  async function syncAll(): Promise<void> {
    for (const fd of [...dirty]) {
      // Forgotten, and closed, while another one was synced.
      if (!dirty.delete(fd)) continue
      syncing.add(fd)
      try {
        await disk.sync(fd)
      } catch (error) {
        onError(error)
      }
      syncing.delete(fd)
      closing.get(fd)?.()
      closing.delete(fd)
    }
  }

  function tick(): void {
    current = syncAll().finally(() => {
      scheduled = false
      if (dirty.size > 0) schedule()
    })
  }

  function schedule(): void {
    scheduled = true
    setTimeout(tick, SYNC_MS).unref()
  }

  return {
    dirty(fd) {
      dirty.add(fd)
      if (!scheduled) schedule()
    },
    forget(fd, close) {
      dirty.delete(fd)
      if (syncing.has(fd)) closing.set(fd, close)
      else close()
    },
    async close() {
      await current
      await syncAll()
    },
  }
}
