import { closeSync, mkdirSync, openSync, renameSync, statSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

const MAX_BYTES = 10 * 1024 * 1024

/** A log file of 10 MB at most and the one before it (`.1`). */
export function openLogFile(path: string): { write(line: string): void } {
  mkdirSync(dirname(path), { recursive: true })
  let size = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  let file = openSync(path, 'a', 0o600)
  return {
    write(line) {
      if (size > MAX_BYTES) {
        closeSync(file)
        renameSync(path, `${path}.1`)
        file = openSync(path, 'a', 0o600)
        size = 0
      }
      // A full disk must not stop the service because of its log.
      try {
        size += writeSync(file, `${line}\n`)
      } catch {}
    },
  }
}
