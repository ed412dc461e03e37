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

/**
 * @param bound the most that its entries weigh together; at least 2.
 * @param weigh what an entry counts as; one, unless told otherwise.
 */
export function createRecentMap<V>(bound: number, weigh: (value: V) => number = () => 1): RecentMap<V> {
  let young = new Map<string, V>()
  let old = new Map<string, V>()
  let youngWeight = 0

  function set(key: string, value: V): void {
    remove(key)
    const weight = weigh(value)
    if (youngWeight + weight > bound >> 1) {
      old = young
      young = new Map()
      youngWeight = 0
    }
    young.set(key, value)
    youngWeight += weight
  }

  function remove(key: string): void {
    old.delete(key)
    const value = young.get(key)
    if (value === undefined) return
    young.delete(key)
    youngWeight -= weigh(value)
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
    delete: remove,
    clear() {
      young = new Map()
      old = new Map()
      youngWeight = 0
    },
    get size() {
      return young.size + old.size
    },
  }
}
