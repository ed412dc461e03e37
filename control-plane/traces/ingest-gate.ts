import { type AppError, unavailable } from '../../shared/errors/app-error.js'

/**
 * Bounds what trace ingestion holds in memory and how much of the database pool it takes.
 *
 * Failure stance: closed, early and politely. Beyond a bound a request is refused with 503 and `Retry-After` before its
 * body is read; OTLP exporters then keep the batch and send it again, so that nothing is lost, and reads and writes of
 * other routes keep their connections.
 */
export interface IngestGate {
  /**
   * Room for a request and the bytes of its body.
   *
   * @throws AppError UNAVAILABLE when there is none.
   */
  enter(bytes: number): Visit
  /**
   * Decodes, maps and writes a request when one of the workers is free, in order of asking: the others wait as the bytes
   * that they came in, which is the smallest they will ever be.
   *
   * @throws AppError UNAVAILABLE when none was free in time.
   */
  work<T>(task: () => Promise<T>): Promise<T>
}

export interface Visit {
  /** More bytes of the same body. @throws AppError UNAVAILABLE */
  grow(bytes: number): void
  /** Once; later calls do nothing. */
  leave(): void
}

export interface GateLimits {
  requests: number
  bytes: number
  workers: number
  waitMs: number
}

/** Four of the pool's ten connections: more do not write faster on two cores, and starve everybody else. */
export const gateLimits: GateLimits = {
  requests: 128,
  bytes: 64 * 1024 * 1024,
  workers: 4,
  // Half of what exporters wait for an answer (10 s): a refusal must reach them while they still listen.
  waitMs: 5_000,
}

const RETRY_AFTER_SECONDS = 2

export const overloaded = (): AppError =>
  unavailable('Trace ingestion is busy. Send the batch again.', RETRY_AFTER_SECONDS)

export function createIngestGate(limits: GateLimits = gateLimits): IngestGate {
  let requests = 0
  let bytesHeld = 0
  let working = 0
  const waiting: { start(): void; refuse(error: AppError): void; sinceMs: number }[] = []

  const take = (bytes: number) => {
    // A single large body passes when it is alone: the route's limit bounds it.
    if (bytesHeld > 0 && bytesHeld + bytes > limits.bytes) throw overloaded()
    bytesHeld += bytes
  }

  const next = () => {
    for (let turn = waiting.shift(); turn !== undefined; turn = waiting.shift()) {
      if (performance.now() - turn.sinceMs <= limits.waitMs) {
        turn.start()
        return
      }
      turn.refuse(overloaded())
    }
    working--
  }

  return {
    enter(bytes) {
      if (requests >= limits.requests) throw overloaded()
      take(bytes)
      requests++
      let mine = bytes
      let isInside = true
      return {
        grow(more) {
          if (!isInside) return
          take(more)
          mine += more
        },
        leave() {
          if (!isInside) return
          isInside = false
          requests--
          bytesHeld -= mine
        },
      }
    },
    async work(task) {
      if (working < limits.workers) working++
      else {
        await new Promise<void>((start, refuse) => {
          waiting.push({ start, refuse, sinceMs: performance.now() })
        })
      }
      try {
        return await task()
      } finally {
        next()
      }
    },
  }
}
