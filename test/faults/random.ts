/**
 * Chance that can be had again: a test prints its seed, and `TEST_SEED=<seed>` repeats the same draws. What the operating
 * system does between two draws stays its own affair.
 */
export interface Chance {
  seed: number
  /** From 0 up to, but without, 1. */
  next(): number
  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number
  shuffled<T>(items: readonly T[]): T[]
}

export function chance(seed: number = seedOfRun()): Chance {
  let state = seed >>> 0
  // mulberry32: 32 bits of state, good enough to choose victims and moments.
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const between = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  return {
    seed,
    next,
    between,
    shuffled(items) {
      const left = [...items]
      return items.map(() => left.splice(between(0, left.length - 1), 1)[0]!)
    },
  }
}

const seedOfRun = () => Number(process.env.TEST_SEED ?? Math.floor(Math.random() * 1_000_000))
