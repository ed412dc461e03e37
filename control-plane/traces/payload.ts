/**
 * What of a caller's own JSON may be stored: attributes, metadata, captured input, output and variables.
 *
 * Failure stance: closed. What cannot be searched for the keys to hide is hidden as a whole.
 */

export const REDACTED = '[REDACTED]'
/** PostgreSQL's own JSON parser and JSON.stringify recurse; no honest document is nested deeper. */
const MAX_DEPTH = 64
const TOO_DEEP = '[NESTED TOO DEEPLY]'
/** UTF-16 units of JSON text per field: input, output, variables, attributes. */
export const MAX_FIELD = 1_000_000
/** What a long string is cut to when a field is too big, in the order tried: data URLs go, the conversation stays. */
const STRING_CUTS = [100_000, 10_000, 1_000]

/** The names to hide, as `redact` wants them. */
export const hiddenKeys = (redactKeys: readonly string[]): ReadonlySet<string> =>
  new Set(redactKeys.map(key => key.toLowerCase()))

/**
 * A value ready to be stored as jsonb: the values of hidden keys replaced by `[REDACTED]` at any depth, also inside
 * strings that hold JSON (tool call arguments do), nesting and size bounded. Unchanged parts are shared, not copied.
 *
 * @param hidden lower-cased key names; names are compared without regard to case.
 * @param length of the JSON text that holds the value, when known: saves measuring a value that cannot be too big.
 */
export function storable(
  value: unknown,
  hidden: ReadonlySet<string>,
  length = Number.POSITIVE_INFINITY,
): unknown {
  const untouched = hidden.size === 0 && isShallow(value, MAX_DEPTH)
  const safe = untouched ? value : redacted(value, hidden, 0)
  return length <= MAX_FIELD ? safe : fitted(safe)
}

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  if (levels === 0) return false
  for (const key in value) {
    if (!isShallow((value as Record<string, unknown>)[key], levels - 1)) return false
  }
  return true
}

function redacted(value: unknown, hidden: ReadonlySet<string>, depth: number): unknown {
  if (typeof value === 'string') return hidden.size === 0 ? value : redactedText(value, hidden, depth)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return TOO_DEEP
  return mapped(value, (member, key) =>
    key !== null && hidden.has(key.toLowerCase()) ? REDACTED : redacted(member, hidden, depth + 1),
  )
}

/** JSON in a string is redacted inside. A string that was cut in mid-JSON and names a hidden key goes as a whole. */
function redactedText(text: string, hidden: ReadonlySet<string>, depth: number): string {
  if (!/^\s*[[{"]/.test(text)) return text
  let inner: unknown
  try {
    inner = JSON.parse(text)
  } catch {
    return mentions(text, hidden) ? REDACTED : text
  }
  const clean = redacted(inner, hidden, depth + 1)
  return clean === inner ? text : JSON.stringify(clean)
}

/** Quoted names only: prose that happens to hold the word stays. Escaped letters are read first. */
function mentions(text: string, hidden: ReadonlySet<string>): boolean {
  const plain = text
    .replace(/\\u([0-9a-f]{4})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
    .toLowerCase()
  return [...hidden].some(key => plain.includes(`"${key}"`) || plain.includes(`"${key}\\"`))
}

/** Cuts long strings, then everything, until the JSON text fits; what was cut says so. */
function fitted(value: unknown): unknown {
  const text = JSON.stringify(value) ?? 'null'
  if (text.length <= MAX_FIELD) return value
  for (const cut of STRING_CUTS) {
    const shorter = withStringsCut(value, cut)
    if (JSON.stringify(shorter).length <= MAX_FIELD) return shorter
  }
  // A quarter: as a JSON string every quote of it is escaped.
  return { truncated: true, length: text.length, beginning: cutText(text, MAX_FIELD / 4) }
}

function withStringsCut(value: unknown, most: number): unknown {
  if (typeof value === 'string' && value.length > most) {
    return `${cutText(value, most)}… [truncated, ${value.length} characters]`
  }
  if (typeof value !== 'object' || value === null) return value
  return mapped(value, member => withStringsCut(member, most))
}

/** At most `most` UTF-16 units, never half of a surrogate pair. */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text
  const last = text.charCodeAt(most - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? most - 1 : most)
}

/**
 * What PostgreSQL takes and no prototype minds, keys included: NUL characters and lone surrogates, which neither text
 * nor jsonb can hold, become U+FFFD; a `__proto__` key is dropped, as from every other JSON body.
 */
export function clean(value: unknown, levels = 2 * MAX_DEPTH): unknown {
  if (typeof value === 'string') return cleanText(value)
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return TOO_DEEP
  return mapped(value, member => clean(member, levels - 1), cleanText)
}

/** Whether JSON text may hold something that `clean` has to change; errs on the side of yes. */
export const needsCleaning = (json: string): boolean =>
  /\\u0000|\\u[dD][89a-fA-F]|__proto__|\\u00(?:5[fF]|70|72|6[fF]|74)/.test(json)

/** NUL characters and lone surrogates become U+FFFD. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: NUL is what it is about.
export const cleanText = (text: string): string => text.replace(/\u0000|\p{Surrogate}/gu, '\ufffd')

/** An array's items or an object's members through `change`; the same object when nothing changed. */
function mapped(
  value: object,
  change: (member: unknown, key: string | null) => unknown,
  rename: (key: string) => string = key => key,
): unknown {
  if (Array.isArray(value)) {
    let copy: unknown[] | null = null
    for (let at = 0; at < value.length; at++) {
      const member = change(value[at], null)
      if (member !== value[at]) {
        copy ??= [...value]
        copy[at] = member
      }
    }
    return copy ?? value
  }
  const own = value as Readonly<Record<string, unknown>>
  const keys = Object.keys(own)
  let members: [string, unknown][] | null = null
  for (const [at, key] of keys.entries()) {
    const [name, member] = [rename(key), change(own[key], key)]
    const isChanged = name !== key || member !== own[key] || key === '__proto__'
    if (isChanged) members ??= keys.slice(0, at).map(before => [before, own[before]])
    if (key !== '__proto__') members?.push([name, member])
  }
  return members === null ? value : Object.fromEntries(members)
}
