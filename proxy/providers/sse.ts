/**
 * Server-sent events as providers send them: bytes in, whole frames out, cut at any byte, also inside a character or a
 * CRLF. Nothing here throws on what a provider sends; what would grow without end is refused (`overflow`).
 */

/** One frame is at most this large: the largest answer that a provider sends in one piece is a fraction of it. */
const FRAME_BYTES_MAX = 16 * 1024 * 1024

const NOTHING: Buffer = Buffer.alloc(0)

/** Two line ends in a row. A carriage return at the very end says nothing yet: a line feed may follow. */
const FRAME_END = /(?:\r\n|\n|\r(?!\n|$))(?:\r\n|\n|\r(?!\n|$))/g

/** Cuts a byte stream behind frames. A piece that ends with a frame, the usual case, is given back as it came. */
export class FrameSplitter {
  #held: Buffer[] = []
  #heldBytes = 0
  /** The last three held characters: a frame's end may straddle two pieces. */
  #tail = ''
  overflow = false

  /** @returns whole frames only, possibly none; the rest is held. */
  push(piece: Buffer): Buffer {
    const { length } = piece
    if (this.#heldBytes === 0 && length > 1 && piece[length - 1] === 10 && piece[length - 2] === 10)
      return piece
    const text = this.#tail + piece.toString('latin1')
    const end = lastFrameEnd(text) - this.#tail.length
    if (end < 0) {
      this.#hold(piece, text)
      return NOTHING
    }
    const whole = this.#joined(piece.subarray(0, end))
    this.#drop()
    if (end < length) this.#hold(piece.subarray(end), text.slice(end - length))
    return whole
  }

  /** What no blank line ended; the provider closed the body behind it. */
  rest(): Buffer {
    const rest = this.#joined(NOTHING)
    this.#drop()
    return rest
  }

  #hold(piece: Buffer, text: string): void {
    this.#held.push(piece)
    this.#heldBytes += piece.length
    this.#tail = text.slice(-3)
    if (this.#heldBytes > FRAME_BYTES_MAX) {
      this.overflow = true
      this.#drop()
    }
  }

  #joined(last: Buffer): Buffer {
    if (this.#heldBytes === 0) return last
    return Buffer.concat([...this.#held, last], this.#heldBytes + last.length)
  }

  #drop(): void {
    this.#held = []
    this.#heldBytes = 0
    this.#tail = ''
  }
}

/** @returns the offset behind the last whole frame, -1 when there is none. */
function lastFrameEnd(text: string): number {
  if (!text.includes('\r')) {
    const at = text.lastIndexOf('\n\n')
    return at < 0 ? -1 : at + 2
  }
  let end = -1
  FRAME_END.lastIndex = 0
  for (const match of text.matchAll(FRAME_END)) end = match.index + match[0].length
  return end
}

/** @returns the offset behind the frame that starts at `from`; the text's length when no blank line ends it. */
export function frameEnd(text: string, from: number, hasCarriageReturn: boolean): number {
  if (!hasCarriageReturn) {
    const at = text.indexOf('\n\n', from)
    return at < 0 ? text.length : at + 2
  }
  FRAME_END.lastIndex = from
  const match = FRAME_END.exec(text)
  return match === null ? text.length : match.index + match[0].length
}

export interface SseEvent {
  /** '' when the frame names none. */
  event: string
  data: string
}

/** @returns null for a frame without data: a comment, a lone `event:`, blank lines. */
export function frameEvent(frame: string): SseEvent | null {
  let event = ''
  let data: string | null = null
  for (const line of frame.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(':')
    if (colon <= 0) continue
    const value = line.slice(line.charCodeAt(colon + 1) === 32 ? colon + 2 : colon + 1)
    const field = line.slice(0, colon).replace(/^\uFEFF/, '')
    if (field === 'event') event = value
    else if (field === 'data') data = data === null ? value : `${data}\n${value}`
  }
  return data === null ? null : { event, data }
}

/** Bytes to events, for the vendors whose streams are translated. */
export class SseReader {
  readonly #frames = new FrameSplitter()

  get overflow(): boolean {
    return this.#frames.overflow
  }

  push(piece: Buffer): SseEvent[] {
    return eventsOf(this.#frames.push(piece))
  }

  /** The body ended: a last event without its blank line counts, as in the vendors' own clients. */
  end(): SseEvent[] {
    return eventsOf(this.#frames.rest())
  }
}

function eventsOf(frames: Buffer): SseEvent[] {
  if (frames.length === 0) return []
  const text = frames.toString('utf8')
  const hasCarriageReturn = text.includes('\r')
  const events: SseEvent[] = []
  for (let from = 0; from < text.length; ) {
    const end = frameEnd(text, from, hasCarriageReturn)
    const event = frameEvent(text.slice(from, end))
    if (event !== null) events.push(event)
    from = end
  }
  return events
}
