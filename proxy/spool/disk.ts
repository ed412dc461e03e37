import {
  closeSync,
  fdatasync,
  fstatSync,
  fsync,
  ftruncateSync,
  openSync,
  read,
  rename,
  statfs,
  unlinkSync,
  writeFile,
  writeSync,
} from 'node:fs'
import { promisify } from 'node:util'

/** What the spool asks of the file system on its hot path; tests put full and failing disks in its place. */
export interface Disk {
  open(path: string, flags: 'ax+' | 'r' | 'a'): number
  /** @returns bytes written, possibly fewer than given. */
  write(fd: number, bytes: Uint8Array): number
  truncate(fd: number, size: number): void
  size(fd: number): number
  close(fd: number): void
  remove(path: string): void
  /** @returns bytes read from `position` into the whole of `into`. */
  read(fd: number, into: Buffer, position: number): Promise<number>
  sync(fd: number): Promise<void>
  /** Writes beside and renames, so that a reader finds the old text or the new. */
  replace(path: string, text: string): Promise<void>
  freeBytes(path: string): Promise<number>
}

const [readAsync, syncAsync, statfsAsync] = [promisify(read), promisify(fdatasync), promisify(statfs)]
const [writeFileAsync, renameAsync] = [promisify(writeFile), promisify(rename)]

/** Prompts and completions are the owner's to read and nobody else's. */
export const FILE_MODE = 0o600
export const DIRECTORY_MODE = 0o700

export const localDisk: Disk = {
  open: (path, flags) => openSync(path, flags, FILE_MODE),
  write: (fd, bytes) => writeSync(fd, bytes),
  truncate: ftruncateSync,
  size: fd => fstatSync(fd).size,
  close: closeSync,
  remove: unlinkSync,
  read: async (fd, into, position) => (await readAsync(fd, into, 0, into.length, position)).bytesRead,
  sync: syncAsync,
  async replace(path, text) {
    await writeFileAsync(`${path}.new`, text, { mode: FILE_MODE })
    await renameAsync(`${path}.new`, path)
  },
  async freeBytes(path) {
    const { bavail, bsize } = await statfsAsync(path)
    return bavail * bsize
  },
}

/** Makes a new file's name durable. Best effort: some file systems refuse to sync a directory. */
export function syncDirectory(path: string): void {
  try {
    const fd = openSync(path, 'r')
    fsync(fd, () => closeSync(fd))
  } catch {
    // The file's own data is synced; only its name could be lost, and only by a power failure.
  }
}
