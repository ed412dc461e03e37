import { setTimeout as sleep } from 'node:timers/promises'
import type { Asking, Client, SeenCall } from './client.js'

/** Callers that ask one after the other, each as fast as it is answered. */
export interface Load {
  /** Finished calls, in order of their end. */
  readonly calls: readonly SeenCall[]
  /** Tokens of calls under way. */
  readonly live: ReadonlySet<string>
  /** Starts no more calls; resolves when those under way have ended. */
  stop(): Promise<void>
}

/** A caller that was refused or found nobody waits this long, as an application would. */
const PAUSE_MS = 25

/** @param next what the `number`th call of all callers asks; null ends the caller. */
export function startLoad(
  client: Client,
  callers: number,
  next: (number: number) => (Omit<Asking, 'token'> & { token?: string }) | null,
): Load {
  const calls: SeenCall[] = []
  const live = new Set<string>()
  let stopping = false
  let count = 0
  const running = Array.from({ length: callers }, async () => {
    while (!stopping) {
      const number = count++
      const asking = next(number)
      if (asking === null) return
      const token = asking.token ?? `call-${number}`
      live.add(token)
      const seen = await client.ask({ ...asking, token })
      live.delete(token)
      calls.push(seen)
      if (seen.outcome !== 'complete') await sleep(PAUSE_MS)
    }
  })
  return {
    calls,
    live,
    async stop() {
      stopping = true
      await Promise.all(running)
    },
  }
}

/** `2 refused/503 UNAVAILABLE, 140 complete`: for a test's figures. */
export function tally(calls: readonly SeenCall[]): string {
  const counts = new Map<string, number>()
  for (const { outcome, status, errorCode } of calls) {
    const name = outcome === 'refused' ? `refused ${status} ${errorCode}` : outcome
    counts.set(name, (counts.get(name) ?? 0) + 1)
  }
  return [...counts].map(([name, count]) => `${count} ${name}`).join(', ')
}
