import type { Verdict } from './sandbox.js'

/** What traces and answers can carry; deeper values overflow the stack of whoever walks them. */
const DEPTH_MAX = 64
/** `__proto__` written plainly or with one of its letters escaped. */
const maybeProto = /__proto__|\\u00(?:5[fF]|70|72|6[fF]|74)/

/** JSON text from code or servers that nobody trusts, as a value: a `__proto__` key is dropped, nesting is bounded. */
export function parseGuestJson(text: string): Verdict<unknown> {
  let value: unknown
  try {
    value = maybeProto.test(text) ? JSON.parse(text, withoutProto) : JSON.parse(text)
  } catch {
    return { ok: false, message: 'It is not JSON.' }
  }
  return isShallow(value, DEPTH_MAX)
    ? { ok: true, value }
    : { ok: false, message: 'It is nested deeper than 64 levels.' }
}

const withoutProto = (key: string, value: unknown) => (key === '__proto__' ? undefined : value)

function isShallow(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return true
  return levels > 0 && Object.values(value).every(member => isShallow(member, levels - 1))
}
