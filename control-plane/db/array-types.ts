/**
 * Arrays of text and of uuids, told to the driver instead of found out by it. Left to itself (`fetch_types`) it asks
 * the catalogue on every new connection, in a promise that nobody awaits: a server that goes away in that moment takes
 * the process with it. Any other array type needs an entry here before a statement may use it.
 */
const TEXT_ARRAY = 1009
const UUID_ARRAY = 2951

export const arrayTypes = {
  texts: { to: TEXT_ARRAY, from: [TEXT_ARRAY, UUID_ARRAY], serialize: arrayLiteral, parse: arrayItems },
}

/** `{"a","b \"c\""}`: one dimension. */
export function arrayLiteral(items: readonly (string | null)[]): string {
  const quoted = items.map(item => (item === null ? 'null' : `"${item.replace(/["\\]/g, '\\$&')}"`))
  return `{${quoted.join(',')}}`
}

export function arrayItems(literal: string): (string | null)[] {
  const items = literal.matchAll(/"((?:[^"\\]|\\.)*)"|([^{},"]+)/gs)
  return [...items].map(([, quoted, plain]) => {
    if (quoted !== undefined) return quoted.replace(/\\(.)/gs, '$1')
    return plain === undefined || plain === 'NULL' ? null : plain
  })
}
