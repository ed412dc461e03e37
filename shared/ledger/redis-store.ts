import { type Cluster, Command, Redis } from 'ioredis'
import type { Logger } from 'pino'
import { connectRedis } from '../redis/connect.js'
import { Breaker } from './breaker.js'
import { Deadlines, REDIS_DEADLINE_MS, SILENCE_MS } from './deadline.js'
import { LedgerUnavailable } from './ledger.js'
import type { Script } from './scripts.js'

/** One script call. Exactly one of `onReply` and `onFailure` is called, once. */
export interface Run {
  script: Script
  keys: readonly string[]
  args: readonly string[]
  onReply(text: string): void
  onFailure(cause: unknown): void
  /** The answer came after the deadline, when `onFailure` had been called: undo what it did. */
  onLate?(text: string): void
}

/**
 * The connection to Redis, a Redis Cluster or Valkey. It never waits: a command has one deadline, fails at once while
 * the store is disconnected, and is not sent while the breaker is open. It reconnects by itself, for ever.
 */
export class RedisStore {
  private readonly client: Redis | Cluster
  private readonly breaker = new Breaker()
  private readonly deadlines: Deadlines
  private silentSinceMs = 0
  private isDown = false

  constructor(
    url: string,
    private readonly log: Logger,
    private readonly deadlineMs: number = REDIS_DEADLINE_MS,
  ) {
    this.deadlines = new Deadlines(deadlineMs)
    this.client = connectRedis(url, settings)
    this.client.on('ready', () => this.cameBack())
    this.client.on('error', error => this.wentAway(error))
    this.client.on('close', () => this.wentAway(new Error('The connection was closed.')))
  }

  /** Sends the scripts of one event-loop turn in one write; on a cluster each by itself. */
  send(runs: readonly Run[]): void {
    const allowed = runs.filter(run => this.allows(run))
    if (allowed.length === 0) return
    const waiting = new Set(allowed)
    const over = this.deadlines.watch(() => {
      this.timedOut()
      const unanswered = [...waiting]
      waiting.clear()
      for (const run of unanswered) run.onFailure(new Error(`No answer from Redis in ${this.deadlineMs} ms.`))
    })
    const deliver = (run: Run, error: Error | null, text: string | null) => {
      if (error?.message.startsWith('NOSCRIPT') === true && waiting.has(run)) {
        // Redis was restarted or its scripts were flushed. A refused script has done nothing.
        this.evaluate(run).then(
          reply => deliver(run, null, reply),
          cause => deliver(run, cause instanceof Error ? cause : new Error(String(cause)), null),
        )
        return
      }
      const isInTime = waiting.delete(run)
      if (waiting.size === 0) over()
      if (error !== null) {
        this.breaker.failed()
        if (isInTime) run.onFailure(error)
        return
      }
      this.heard()
      if (isInTime) run.onReply(text ?? '')
      else run.onLate?.(text ?? '')
    }
    this.execute(allowed, deliver)
  }

  /** One script call by itself. @throws LedgerUnavailable */
  run(script: Script, keys: readonly string[], args: readonly string[]): Promise<string> {
    return new Promise((resolve, reject) => {
      const onFailure = (cause: unknown) => reject(new LedgerUnavailable(cause))
      this.send([{ script, keys, args, onReply: resolve, onFailure }])
    })
  }

  /** Asks past the breaker. @throws LedgerUnavailable */
  ping(): Promise<void> {
    return new Promise((resolve, reject) => {
      const expired = () => reject(new LedgerUnavailable(new Error('No answer to PING.')))
      const over = this.deadlines.watch(expired)
      this.client.ping().then(
        () => {
          over()
          this.heard()
          resolve()
        },
        cause => {
          over()
          reject(new LedgerUnavailable(cause))
        },
      )
    })
  }

  /** Resolves when connected, or after `timeoutMs`: a process may start while the store is away. */
  ready(timeoutMs: number): Promise<void> {
    if (this.client.status === 'ready') return Promise.resolve()
    return new Promise(resolve => {
      const timer = setTimeout(resolve, timeoutMs)
      this.client.once('ready', () => {
        clearTimeout(timer)
        resolve()
      })
    })
  }

  async close(): Promise<void> {
    this.deadlines.close()
    this.client.removeAllListeners('close')
    this.client.disconnect()
  }

  private allows(run: Run): boolean {
    if (this.breaker.allows()) return true
    run.onFailure(new Error('Redis has not answered; it is asked once a second.'))
    return false
  }

  private execute(
    runs: readonly Run[],
    deliver: (run: Run, error: Error | null, text: string | null) => void,
  ): void {
    // The socket of a single Redis; `pipeline()` would do the same for three more promises and an array a command.
    const socket = this.client instanceof Redis && runs.length > 1 ? this.client.stream : undefined
    socket?.cork()
    for (const run of runs) {
      const command = new Command('evalsha', [], { replyEncoding: 'latin1' })
      // Not through the constructor, which flattens: 4 thousand instructions a call.
      command.args = [run.script.sha, String(run.keys.length), ...run.keys, ...run.args]
      command.promise.then(
        text => deliver(run, null, text as string),
        (error: Error) => deliver(run, error, null),
      )
      this.client.sendCommand(command)
    }
    socket?.uncork()
  }

  private evaluate(run: Run): Promise<string> {
    return this.client.eval(run.script.source, run.keys.length, ...run.keys, ...run.args) as Promise<string>
  }

  private timedOut(): void {
    if (this.breaker.isFlawless) this.silentSinceMs = performance.now()
    this.breaker.failed()
    if (!this.breaker.isOpen) return
    this.wentAway(new Error('Redis does not answer.'))
    const isSilent = performance.now() - this.silentSinceMs > SILENCE_MS
    // A cluster client watches its nodes itself.
    if (isSilent && this.client instanceof Redis && this.client.status === 'ready')
      this.client.disconnect(true)
  }

  private wentAway(error: Error): void {
    if (this.isDown) return
    this.isDown = true
    this.log.error({ err: error }, 'the ledger’s Redis cannot be reached')
  }

  private heard(): void {
    this.breaker.succeeded()
    if (this.isDown) this.cameBack()
  }

  private cameBack(): void {
    this.breaker.succeeded()
    if (this.isDown) this.log.info('the ledger’s Redis answers again')
    this.isDown = false
  }
}

/** Of the one client; a cluster's are in `connectRedis`. Reliability notes, 4.3, has what their defaults do with a frozen server. */
const settings = {
  enableOfflineQueue: false,
  // A command that was under way when the connection broke may have been carried out: it is never sent twice.
  autoResendUnfulfilledCommands: false,
  maxRetriesPerRequest: 0,
  connectTimeout: 1000,
  retryStrategy: (attempt: number) => Math.min(50 * 2 ** Math.min(attempt, 4), 500),
  // After a failover the old primary refuses writes: find the new one.
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
}
