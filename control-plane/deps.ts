import type { Ledger } from '../shared/ledger/ledger.js'
import type { Logger } from '../shared/log/logger.js'
import type { Vault } from '../shared/secrets/vault.js'
import type { Config } from './config.js'
import type { Sql } from './db/sql.js'
import type { Jobs } from './jobs/enqueue.js'
import type { Mailer } from './mail/mailer.js'
import type { Sandbox } from './sandbox/sandbox.js'

/** Everything that a domain of the control plane may use; passed, never imported (style, habit 2). */
export interface Deps {
  config: Config
  sql: Sql
  ledger: Ledger
  vault: Vault
  mail: Mailer
  jobs: Jobs
  /** Runs what users wrote in JavaScript and JSON Schema. */
  sandbox: Sandbox
  log: Logger
  /** Epoch milliseconds. */
  now: () => number
}
