/**
 * A Bloom filter over the trigrams of a text, one hash each, with which a search skips nearly every text that does not
 * hold it. Measured against a GIN index of pg_trgm on the same texts: 7 µs instead of 147 µs of CPU a span, 0.1 KB
 * instead of 1.4 KB, and no extension.
 *
 * It must never miss what PostgreSQL's `ilike` finds in a name or in the text of a jsonb value: letters are folded at
 * least as far as it folds them, and trigrams stop at everything that JSON writes in more than one way (quotes,
 * escapes, the space after a colon).
 */

/** Positions of the widest filter; a narrower one takes them modulo its own width. */
const WIDEST = 65_536
/** Bits per distinct trigram: less than a third of a filter is set. */
const BITS_PER_TRIGRAM = 3.5
/** Widths are multiples of this. */
const WIDTH_STEP = 256
/** Trigrams of a search that are looked up: each of them lets a third of the wrong texts pass. */
const MOST_LOOKED_UP = 12

/** The distinct positions of what is being read; kept from call to call, a call leaves them empty. */
const seen = new Uint8Array(WIDEST)
const positions = new Uint16Array(WIDEST)
/** Matches every search: for a text whose printed form is not foreseeable. */
const everything = Buffer.from([0xff])

/**
 * @param plain texts as they are; @param json JSON texts, as `JSON.stringify` prints them.
 * @returns bit n is bit n modulo 8 of byte n / 8, as PostgreSQL's `get_bit` counts.
 */
export function signatureOf(plain: readonly string[], json: readonly string[]): Buffer {
  if (json.some(hasExponent)) return everything
  let count = 0
  for (const text of plain) count = readTrigrams(folded(text), false, count)
  for (const text of json) count = readTrigrams(folded(text), true, count)
  const width = Math.min(WIDEST, Math.ceil((count * BITS_PER_TRIGRAM + 1) / WIDTH_STEP) * WIDTH_STEP)
  const filter = Buffer.alloc(width / 8)
  for (let i = 0; i < count; i++) {
    const position = positions[i]!
    seen[position] = 0
    const bit = position % width
    filter[bit >> 3] = filter[bit >> 3]! | (1 << (bit & 7))
  }
  return filter
}

/** The positions that are set in the filter of every text that holds a search. Empty: it is too short to tell. */
export function positionsOf(search: string): number[] {
  // Beside a colon or a comma PostgreSQL prints a space where JSON.stringify has none.
  const tight = folded(search).replace(/ *(["\\:,{}[\]]|\p{Cc}) */gu, '$1')
  const all = [...positions.subarray(0, readTrigrams(tight, false, 0))]
  for (const position of all) seen[position] = 0
  const step = Math.max(1, all.length / MOST_LOOKED_UP)
  return Array.from({ length: Math.min(all.length, MOST_LOOKED_UP) }, (_, i) => all[Math.floor(i * step)]!)
}

/** PostgreSQL folds letter by letter: İ is i there, and a sigma is a sigma wherever in a word it stands. */
function folded(text: string): string {
  return text.replaceAll('\u0130', 'i').toLowerCase().replaceAll('\u03c2', '\u03c3')
}

/** A number that jsonb prints in another way than JSON.stringify. */
const hasExponent = (json: string) => /(^|[:,[])-?\d+(\.\d+)?e[+-]?\d/.test(json)

/** Adds the positions of a text's trigrams to the first `count`. @returns how many there are then. */
function readTrigrams(text: string, isJson: boolean, count: number): number {
  let total = count
  let run = 0
  let [a, b] = [0, 0]
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i)
    if (c < 0xa0 && breaks[c] === 1) {
      run = 0
      // An escape is one character, however it is written.
      if (isJson && c === BACKSLASH) i += text.charCodeAt(i + 1) === LETTER_U ? 5 : 1
      continue
    }
    run += 1
    if (run >= 3) {
      const position = hash(a, b, c)
      // Written always, counted when it is new: nobody can foresee which, and a branch here costs half as much again.
      positions[total] = position
      total += 1 - seen[position]!
      seen[position] = 1
    }
    a = b
    b = c
  }
  return total
}

const BACKSLASH = 0x5c
const LETTER_U = 0x75
/** Control characters, and what JSON is punctuated with. */
const breaks = new Uint8Array(0xa0)
breaks.fill(1, 0, 0x20).fill(1, 0x7f)
for (const mark of '",:[]{}\\') breaks[mark.charCodeAt(0)] = 1

function hash(a: number, b: number, c: number): number {
  let h = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b) ^ Math.imul(c, 0xc2b2ae35)
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d)
  return (h ^ (h >>> 13)) & (WIDEST - 1)
}
