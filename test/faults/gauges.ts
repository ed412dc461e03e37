import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { System } from '../support/system.js'

/** What a program's log must not hold: a promise or an exception that nobody took, in our words and in Node's. */
export const LOOSE_ENDS = /nobody (awaits|caught)|unhandled|uncaught|completion failed/i

/** A figure of the proxy's /metrics; 0 when it does not have it. */
export async function metric(system: System, name: string): Promise<number> {
  const response = await fetch(`${system.origin}/metrics`)
  const line = (await response.text()).split('\n').find(text => text.startsWith(`${name} `))
  return Number(line?.slice(name.length + 1) ?? 0)
}

/** Polls until it holds. @throws what was waited for, and the last value, when it does not within the limit. */
export async function until<T>(
  what: string,
  limitMs: number,
  read: () => Promise<T> | T,
  holds: (value: T) => boolean,
): Promise<T> {
  const deadline = performance.now() + limitMs
  for (;;) {
    const value = await read()
    if (holds(value)) return value
    if (performance.now() > deadline)
      throw new Error(`${what}: not within ${limitMs} ms, but ${JSON.stringify(value)}`)
    await sleep(50)
  }
}

/** Resolves when every finished call is committed and no call is under way. */
export async function drained(system: System, limitMs = 30_000): Promise<void> {
  await until(
    'an empty spool',
    limitMs,
    () => metric(system, 'agh_spool_bytes'),
    bytes => bytes === 0,
  )
  await until(
    'no live holds',
    limitMs,
    () => metric(system, 'agh_proxy_live_holds'),
    holds => holds === 0,
  )
}

/** Resident memory of a process in MB (Linux; elsewhere 0). */
export function residentMb(pid: number): number {
  try {
    const kb = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Number(kb ?? 0) / 1024
  } catch {
    return 0
  }
}
