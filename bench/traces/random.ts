/** Numbers that look random and are the same in every run (sfc32: seeds do not run into each other's numbers). */
export type Random = () => number

export function seeded(seed: number): Random {
  let [a, b, c, counter] = [0x9e3779b9, 0x243f6a88, seed | 0, 1]
  const next = () => {
    const sum = (((a + b) | 0) + counter) | 0
    counter = (counter + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (((c << 21) | (c >>> 11)) + sum) | 0
    return (sum >>> 0) / 4_294_967_296
  }
  for (let round = 0; round < 15; round++) next()
  return next
}

export const pick = <T>(random: Random, items: readonly T[]): T =>
  items[Math.floor(random() * items.length)] as T

/** The first items come far more often than the last ones. */
export const pickSkewed = <T>(random: Random, items: readonly T[]): T =>
  items[Math.floor(random() ** 3 * items.length)] as T

export const between = (random: Random, least: number, most: number): number =>
  least + Math.floor(random() * (most - least + 1))

const hex = (random: Random) => ((random() * 4_294_967_296) >>> 0).toString(16).padStart(8, '0')

export function uuid(random: Random): string {
  const [a, b, c, d] = [hex(random), hex(random), hex(random), hex(random)]
  return `${a}-${b.slice(0, 4)}-4${b.slice(5)}-8${c.slice(1, 4)}-${c.slice(4)}${d}`
}

/** 16 hexadecimal digits. */
export const spanId = (random: Random): string => hex(random) + hex(random)

/** Milliseconds: mostly some hundreds, now and then many thousands. */
export const latencyMs = (random: Random, typical: number): number =>
  Math.round(typical * Math.exp((random() + random() + random() - 1.5) * 1.6))

const syllables = [
  'ka',
  'lo',
  'mi',
  'ter',
  'san',
  'vo',
  'dre',
  'pul',
  'ne',
  'ri',
  'qua',
  'bos',
  'ten',
  'fa',
  'gi',
]

/** 2,000 words; the first ones are in nearly every text. */
export const vocabulary: readonly string[] = (() => {
  const random = seeded(7)
  const words = new Set([
    'order',
    'refund',
    'please',
    'customer',
    'shipping',
    'invoice',
    'the',
    'and',
    'answer',
  ])
  while (words.size < 2_000) {
    words.add(Array.from({ length: between(random, 2, 4) }, () => pick(random, syllables)).join(''))
  }
  return [...words]
})()

/** Four words each: texts are put together from phrases, which costs the loader a tenth of choosing every word. */
const phrases: readonly string[] = (() => {
  const random = seeded(8)
  const words = () => Array.from({ length: 4 }, () => pickSkewed(random, vocabulary)).join(' ')
  return Array.from({ length: 50_000 }, words)
})()

/** @param words at least so many, up to three more. */
export function sentence(random: Random, words: number): string {
  let text = pick(random, phrases)
  for (let written = 4; written < words; written += 4) text += ` ${pick(random, phrases)}`
  return text
}
