import { unavailable } from '../../shared/errors/app-error.js'
import type { Job, Outcome, WorkerSettings } from './messages.js'
import { WorkerSlot } from './worker-slot.js'

export interface PoolSettings extends WorkerSettings {
  /** Worker threads. */
  size: number
  /** The longest that a job may keep its worker. */
  wallMs: number
  /** Jobs that may wait, of one team and of all; the first of each team may beyond. */
  waitingPerTeam: number
  waitingMax: number
}

interface Waiting {
  job: Job
  resolve(outcome: Outcome): void
  reject(error: Error): void
}

/**
 * A few worker threads, started when they are first needed and replaced when one was ended.
 *
 * Failure stance: bounded. Jobs beyond the queue are refused at once; teams take turns, so that one whose transforms all
 * run into the wall clock delays the others by a turn each and not by its whole queue.
 */
export class WorkerPool {
  readonly #settings: PoolSettings
  readonly #idle: WorkerSlot[] = []
  readonly #slots = new Set<WorkerSlot>()
  /** By team, in the order in which their turn comes. */
  readonly #queues = new Map<string, Waiting[]>()
  #waiting = 0
  #isClosed = false

  constructor(settings: PoolSettings) {
    this.#settings = settings
  }

  /** @throws AppError UNAVAILABLE when too many jobs wait, when no worker can be started, and after `close`. */
  run(job: Job, team: string): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      const queue = this.#queues.get(team) ?? []
      // A team that waits for nothing yet always gets its turn: a few others cannot fill the room against it.
      const isFull =
        queue.length >= this.#settings.waitingPerTeam ||
        (queue.length > 0 && this.#waiting >= this.#settings.waitingMax)
      if (this.#isClosed || isFull) {
        reject(unavailable('Too many transforms and schema checks are waiting; try again.'))
        return
      }
      queue.push({ job, resolve, reject })
      this.#queues.set(team, queue)
      this.#waiting++
      this.#work()
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#refuseWaiting(new Error('closed'))
    await Promise.all([...this.#slots].map(slot => slot.close()))
  }

  #work(): void {
    while (this.#waiting > 0) {
      const slot = this.#idle.pop()
      if (slot === undefined) break
      void this.#serve(slot)
    }
    const starting = this.#slots.size < this.#settings.size && this.#waiting > 0 && !this.#isClosed
    if (starting) void this.#start()
  }

  async #start(): Promise<void> {
    const slot = new WorkerSlot(this.#settings)
    this.#slots.add(slot)
    try {
      await slot.ready()
    } catch (error) {
      this.#slots.delete(slot)
      // Whoever comes next tries again; to go on here would start threads in a circle.
      if (this.#slots.size === 0) this.#refuseWaiting(error as Error)
      return
    }
    this.#idle.push(slot)
    this.#work()
  }

  async #serve(slot: WorkerSlot): Promise<void> {
    const { job, resolve } = this.#next()
    const { outcome, isAlive } = await slot.run(job)
    if (isAlive) this.#idle.push(slot)
    else this.#slots.delete(slot)
    resolve(outcome)
    this.#work()
  }

  /** The oldest job of the team whose turn it is; the team then goes to the end of the line. */
  #next(): Waiting {
    const [team, queue] = this.#queues.entries().next().value as [string, Waiting[]]
    const first = queue.shift() as Waiting
    this.#queues.delete(team)
    if (queue.length > 0) this.#queues.set(team, queue)
    this.#waiting--
    return first
  }

  #refuseWaiting(cause: Error): void {
    const refused = [...this.#queues.values()].flat()
    this.#queues.clear()
    this.#waiting = 0
    for (const { reject } of refused)
      reject(unavailable('The sandbox cannot be used now; try again.', 1, cause))
  }
}
