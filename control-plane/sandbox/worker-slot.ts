import { Worker } from 'node:worker_threads'
import type { Job, Outcome, Ready, Reply, WorkerSettings } from './messages.js'
import { ThreadClock } from './thread-clock.js'

/** Megabytes. The engine's own memory is outside of these, and capped by itself. */
const RESOURCE_LIMITS = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 8, stackSizeMb: 4 }
/** Loading takes some 60 ms; a machine that is too busy for this has no use for the sandbox. */
const READY_WITHIN_MS = 20_000
/** The reply may lie in the inbox of an event loop that was busy itself: it gets one more look. */
const LAST_LOOK_MS = 5

/** How a job ended, and whether its worker can take another. */
export interface Finished {
  outcome: Outcome
  isAlive: boolean
}

/** One worker thread: no environment, no standard streams, one job at a time, ended when a job outstays the wall clock. */
export class WorkerSlot {
  readonly #worker: Worker
  readonly #wallMs: number
  readonly #ready: Promise<void>
  #settle: ((finished: Finished) => void) | null = null
  #thread: string | null = null

  constructor(settings: WorkerSettings & { wallMs: number }) {
    this.#wallMs = settings.wallMs
    const workerData: WorkerSettings = { interruptMs: settings.interruptMs }
    this.#worker = new Worker(new URL('./worker.js', import.meta.url), {
      workerData,
      env: {},
      execArgv: [],
      stdin: false,
      stdout: true,
      stderr: true,
      resourceLimits: RESOURCE_LIMITS,
    })
    this.#ready = this.#listen()
    // Whoever waits for it hears of a failure; nobody may be waiting yet.
    this.#ready.catch(() => {})
  }

  /** @throws Error when the thread cannot be started. */
  ready(): Promise<void> {
    return this.#ready
  }

  /** Does one job. Never rejects: a thread that dies or is ended answers with a sentence, and is not alive. */
  run(job: Job): Promise<Finished> {
    return new Promise(settle => {
      this.#worker.ref()
      const clock = new ThreadClock(this.#wallMs, this.#thread)
      const over = () => this.#end(`It ran longer than ${this.#wallMs} ms.`)
      const look = () => {
        const leftMs = clock.leftMs()
        timer = leftMs > 0 ? setTimeout(look, leftMs) : setTimeout(over, LAST_LOOK_MS)
      }
      let timer = setTimeout(look, this.#wallMs)
      this.#settle = finished => {
        clearTimeout(timer)
        this.#settle = null
        // An idle thread keeps no process alive.
        if (finished.isAlive) this.#worker.unref()
        settle(finished)
      }
      this.#worker.postMessage(job)
    })
  }

  async close(): Promise<void> {
    await this.#end('The sandbox is being closed.')
  }

  #listen(): Promise<void> {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => {
        reject(new Error('a sandbox worker did not start in time'))
        void this.#worker.terminate()
      }, READY_WITHIN_MS)
      this.#worker.on('message', (message: Reply | Ready) => {
        if ('thread' in message) {
          clearTimeout(late)
          this.#thread = message.thread
          // The job that it was started for may have found another thread.
          this.#worker.unref()
          resolve()
        } else {
          this.#settle?.({ outcome: message.outcome, isAlive: !message.isSpent })
          if (message.isSpent) void this.#worker.terminate()
        }
      })
      const died = (error: Error) => {
        clearTimeout(late)
        reject(error)
        this.#settle?.({
          outcome: { ok: false, message: 'It needs more memory than it may have.' },
          isAlive: false,
        })
      }
      this.#worker.on('error', died)
      this.#worker.on('exit', code => died(new Error(`a sandbox worker ended with code ${code}`)))
    })
  }

  /** The job is answered when its thread is gone: its memory is then free, and its place can be filled again. */
  async #end(message: string): Promise<void> {
    const settle = this.#settle
    this.#settle = null
    await this.#worker.terminate()
    settle?.({ outcome: { ok: false, message }, isAlive: false })
  }
}
