import { setTimeout as wait } from 'node:timers/promises'
import type { Logger } from 'pino'
import postgres from 'postgres'
import { Breaker } from './breaker.js'
import { Deadlines, POSTGRES_DEADLINE_MS, SILENCE_MS } from './deadline.js'
import { LedgerUnavailable } from './ledger.js'

/** One statement runs on each; teams wait for each other only here. */
const CONNECTIONS = 4

export type LedgerSql = postgres.Sql
export type Rows = readonly postgres.Row[]

/**
 * The connections to PostgreSQL. The driver has no deadline for a query, so each one races with a timer; after five
 * failures in a row queries fail at once, but for one a second.
 */
export class PostgresStore {
  private client: LedgerSql
  private readonly breaker = new Breaker()
  private readonly deadlines: Deadlines
  private silentSinceMs = 0
  private isDown = false

  constructor(
    private readonly url: string,
    private readonly log: Logger,
    private readonly deadlineMs: number = POSTGRES_DEADLINE_MS,
  ) {
    this.deadlines = new Deadlines(deadlineMs)
    this.client = this.connect()
  }

  /**
   * @param onLate gets the rows of a query that answered after its deadline, when the caller had been told that the
   *   ledger is away.
   * @throws LedgerUnavailable
   */
  query(statement: (sql: LedgerSql) => PromiseLike<Rows>, onLate?: (rows: Rows) => void): Promise<Rows> {
    if (!this.breaker.allows())
      return Promise.reject(
        new LedgerUnavailable(new Error('PostgreSQL has not answered; it is asked once a second.')),
      )
    return this.race(statement, onLate)
  }

  /** Opens the connections, so that no call pays for that; resolves after `timeoutMs` at the latest. */
  async ready(timeoutMs: number): Promise<void> {
    const { client } = this
    const opened = Array.from({ length: CONNECTIONS }, () => client`select pg_sleep(0.005)`)
    await Promise.race([Promise.allSettled(opened), wait(timeoutMs)])
  }

  /** Asks past the breaker. @throws LedgerUnavailable */
  async ping(): Promise<void> {
    await this.race(sql => sql`select 1`)
  }

  async close(): Promise<void> {
    this.deadlines.close()
    await this.client.end({ timeout: 1 })
  }

  private race(
    statement: (sql: LedgerSql) => PromiseLike<Rows>,
    onLate?: (rows: Rows) => void,
  ): Promise<Rows> {
    return new Promise((resolve, reject) => {
      let isLate = false
      const over = this.deadlines.watch(() => {
        isLate = true
        const cause = new Error(`No answer from PostgreSQL in ${this.deadlineMs} ms.`)
        this.timedOut(cause)
        reject(new LedgerUnavailable(cause))
      })
      statement(this.client).then(
        rows => {
          over()
          this.answered()
          if (isLate) onLate?.(rows)
          else resolve(rows)
        },
        cause => {
          over()
          if (!isLate) this.failed(cause)
          reject(new LedgerUnavailable(cause))
        },
      )
    })
  }

  private connect(): LedgerSql {
    return postgres(this.url, {
      max: CONNECTIONS,
      connect_timeout: 1,
      backoff: () => 0.1,
      // Kept open: a new connection costs the call that needs it up to half the deadline.
      max_lifetime: null,
      idle_timeout: 0,
      // Array types are cast in the statements; asking the catalogue for them would be one more round trip each.
      fetch_types: false,
      onnotice: () => {},
      // The server gives up with the client, so that nothing is admitted that nobody waits for.
      connection: {
        application_name: 'agh-ledger',
        lock_timeout: Math.ceil(this.deadlineMs * 0.8),
        statement_timeout: this.deadlineMs,
      },
    })
  }

  private timedOut(cause: Error): void {
    if (this.breaker.isFlawless) this.silentSinceMs = performance.now()
    this.failed(cause)
    if (!this.breaker.isOpen || performance.now() - this.silentSinceMs <= SILENCE_MS) return
    const silent = this.client
    this.client = this.connect()
    this.silentSinceMs = performance.now()
    silent.end({ timeout: 10 }).catch(() => {})
  }

  private failed(cause: unknown): void {
    this.breaker.failed()
    if (!this.breaker.isOpen || this.isDown) return
    this.isDown = true
    this.log.error({ err: cause }, 'the ledger’s PostgreSQL cannot be reached')
  }

  private answered(): void {
    this.breaker.succeeded()
    if (this.isDown) this.log.info('the ledger’s PostgreSQL answers again')
    this.isDown = false
  }
}
