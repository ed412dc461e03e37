/** What goes wrong with one answer of the fake provider. Combine as needed. */
export interface Fault {
  /** Resets the connection before any byte of an answer. */
  reset?: boolean
  /** Answers with this status and `body`, or with an error in the vendor's own form. */
  status?: number
  body?: string
  /** Sent as it is: seconds or an HTTP date. */
  retryAfter?: string
  /** Never answers. */
  hang?: boolean
  /** Milliseconds before the head. */
  headDelay?: number
  /** Cuts the connection after this many bytes of the body. */
  cut?: number
  /** The body's end is the connection's end: with `cut`, a cut that looks like a clean end. */
  closeDelimited?: boolean
  /** After the second frame of a stream comes something that is no frame. A plain answer is no JSON. */
  garbage?: boolean
  /** Every byte in a write of its own. */
  oneByte?: boolean
  /** No `[DONE]`, no `message_stop`, no finish reason of Google's. */
  noDone?: boolean
  /** Milliseconds between chunks. */
  chunkDelay?: number
  /** How many content chunks (and output tokens). */
  chunks?: number
  /** Bytes of each chunk's text. */
  chunkBytes?: number
  /** An error in the stream behind this many frames. */
  inBandError?: number
  /** Usage comes on the finish chunk, as some compatible servers have it. */
  usageOnLast?: boolean
  noUsage?: boolean
  cachedTokens?: number
  /** A Content-Length larger than the body by this much. */
  lengthOff?: number
}

const FLAGS = new Set<string>([
  'reset',
  'hang',
  'closeDelimited',
  'garbage',
  'oneByte',
  'noDone',
  'usageOnLast',
  'noUsage',
])
const TEXTS = new Set<string>(['body', 'retryAfter'])

/**
 * A fault in words, for a header or a user message: `status=429 retryAfter=7`, `cut=100 closeDelimited`.
 *
 * @returns null when the text holds no fault: in a message it must stand in `[fault …]`.
 */
export function faultIn(text: string): Fault | null {
  const inner = /\[fault ([^\]]*)\]/.exec(text)?.[1]
  return inner === undefined ? null : parseFault(inner)
}

export function parseFault(text: string): Fault {
  const fault: Record<string, unknown> = {}
  for (const word of text.trim().split(/\s+/)) {
    const [name = '', value] = word.split('=')
    if (name === '') continue
    if (FLAGS.has(name)) fault[name] = true
    else fault[name] = TEXTS.has(name) ? value : Number(value)
  }
  return fault as Fault
}
