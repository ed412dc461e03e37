/**
 * The embedded server's data directory: `postgres` under DATA_DIR. Under root the server runs as another user, who may
 * not be able to enter DATA_DIR (everything below /root, mode 700): then it lies under /var/lib/agh, and a file in
 * DATA_DIR says where. Neither the modes of folders that are not agh's are changed, nor rights given to the server.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ConfigError } from '../shared/config/environment.js'
import { canEnter, postgresAccount } from './postgres-account.js'

const ELSEWHERE = '/var/lib/agh'

/** @returns where it is, and whether that had to be outside DATA_DIR. */
export function postgresHome(dataDir: string): { path: string; isElsewhere: boolean } {
  const pointer = join(dataDir, 'postgres.location')
  if (existsSync(pointer)) return { path: pointedTo(pointer), isElsewhere: true }
  const inside = join(dataDir, 'postgres')
  const account = postgresAccount()
  if (account === null) return { path: inside, isElsewhere: false }
  // DATA_DIR itself is agh's own: others may pass through it, not list it.
  chmodSync(dataDir, statSync(dataDir).mode | 0o011)
  if (canEnter(account, dataDir)) return { path: inside, isElsewhere: false }

  const path = join(ELSEWHERE, `data-${randomBytes(6).toString('hex')}`)
  mkdirSync(path, { recursive: true })
  for (const folder of [ELSEWHERE, path]) chmodSync(folder, 0o711)
  writeFileSync(pointer, `${join(path, 'postgres')}\n`)
  return { path: join(path, 'postgres'), isElsewhere: true }
}

/** A DATA_DIR that outlives the rest of its machine, as a container's volume: an empty database would look like a loss. */
function pointedTo(pointer: string): string {
  const path = readFileSync(pointer, 'utf8').trim()
  if (existsSync(dirname(path))) return path
  throw new ConfigError(
    `${pointer} says that the database is in ${path}, which is gone. Bring it back; or remove that file to start with an empty database.`,
  )
}
