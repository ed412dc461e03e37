/**
 * A bounded map that forgets what was not used for longest, roughly: two generations of half the bound each. A hit
 * costs one look-up, not the delete and insert of an exact LRU.
 */
export interface RecentMap<V> {
  get(key: string): V | undefined
  set(key: string, value: V): void
  delete(key: string): void
  clear(): void
  readonly size: number
}

/** @param bound most entries that it holds; at least 2. */
export function createRecentMap<V>(bound: number): RecentMap<V> {
  let young = new Map<string, V>()
  let old = new Map<string, V>()

  function set(key: string, value: V): void {
    old.delete(key)
    if (young.size >= bound >> 1 && !young.has(key)) {
      old = young
      young = new Map()
    }
    young.set(key, value)
  }

  return {
    get(key) {
      const value = young.get(key)
      if (value !== undefined) return value
      const aged = old.get(key)
      if (aged !== undefined) set(key, aged)
      return aged
    },
    set,
    delete(key) {
      young.delete(key)
      old.delete(key)
    },
    clear() {
      young = new Map()
      old = new Map()
    },
    get size() {
      return young.size + old.size
    },
  }
}
