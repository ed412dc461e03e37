import { isDeepStrictEqual } from 'node:util'

/** Names of the fields whose values differ, in the order given: what an `..._updated` event lists. */
export const changedFields = <T extends object>(
  before: T,
  after: T,
  names: readonly (keyof T & string)[],
): string[] => names.filter(name => !isDeepStrictEqual(before[name], after[name]))
