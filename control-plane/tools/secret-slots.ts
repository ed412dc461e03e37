import { randomBytes } from 'node:crypto'
import { percentEncoded } from './percent-encoding.js'

/** Shorter ones are no secrets, and hiding them would hide half of every text. */
const HIDDEN_FROM = 4

/**
 * A team's secrets for one execution. Until the request leaves, each is a placeholder: a transform's author is not who
 * set the secret, so the transform may place it, but not read it. Placeholders hold a random part, so that an argument
 * which spells one, or `{{secret.NAME}}`, is only text.
 */
export class SecretSlots {
  readonly #values: ReadonlyMap<string, string>
  readonly #nonce = randomBytes(16).toString('hex')
  readonly #slot = new RegExp(`agh${this.#nonce}-([A-Z][A-Z0-9_]{0,63})-`, 'g')
  readonly #hidden: RegExp | null

  constructor(values: ReadonlyMap<string, string>) {
    this.#values = values
    this.#hidden = patternOf([...values.values()])
  }

  /** Letters, digits, `_` and `-` only: the same text in a URL, a header and JSON. */
  placeholder(name: string): string {
    return `agh${this.#nonce}-${name}-`
  }

  isIn(text: string): boolean {
    return text.search(this.#slot) >= 0
  }

  /** The secrets in place of their placeholders. */
  fill(text: string, encode: (value: string) => string = value => value): string {
    return text.replace(this.#slot, (whole, name: string) => {
      const value = this.#values.get(name)
      return value === undefined ? whole : encode(value)
    })
  }

  /** As `fill`, in every string of a JSON value. */
  fillJson(value: unknown): unknown {
    return mapTexts(value, text => this.fill(text))
  }

  /** `***` in place of every secret, as it is or percent-encoded, in every string and key of a JSON value. */
  masked<T>(value: T): T {
    const hidden = this.#hidden
    return hidden === null ? value : (mapTexts(value, text => text.replace(hidden, '***')) as T)
  }
}

/** Longest first: of two secrets, one may begin with the other. */
function patternOf(values: readonly string[]): RegExp | null {
  const forms = values
    .filter(value => value.length >= HIDDEN_FROM)
    .flatMap(value => [value, percentEncoded(value)])
  if (forms.length === 0) return null
  const sorted = [...new Set(forms)].sort((a, b) => b.length - a.length)
  return new RegExp(sorted.map(form => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g')
}

function mapTexts(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value)
  if (Array.isArray(value)) return value.map(item => mapTexts(item, change))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([key, member]) => [change(key), mapTexts(member, change)]),
  )
}
