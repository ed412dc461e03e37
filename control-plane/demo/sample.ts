/** A value for a JSON Schema, so that the demo model's tool calls and structured answers fit what was asked for. */
interface Schema {
  type?: unknown
  enum?: unknown
  const?: unknown
  default?: unknown
  properties?: unknown
  items?: unknown
  anyOf?: unknown
  minItems?: unknown
}

const MAX_DEPTH = 8
/**
 * UTF-16 units of the user's text that are looked at. The patterns below take the square of them at worst: a few
 * milliseconds here, minutes with the whole of a text of 100 KB.
 */
const MOST_TEXT = 1_000

/** What the user's text offers. Looked for once: a schema may have thousands of places for it. */
interface Hints {
  /** Its first number, else 1. */
  number: number
  /** What is quoted, else the words after the last "for", "in", "of" or "about", else all of it. */
  subject: string
  lowerCase: string
}

/** Strings and numbers come from the user's text. */
export const sample = (schema: unknown, text: string): unknown =>
  sampleOf(schema, hintsOf(text.slice(0, MOST_TEXT)), 0)

function sampleOf(schema: unknown, hints: Hints, depth: number): unknown {
  const {
    type,
    enum: choices,
    const: fixed,
    default: usual,
    properties,
    items,
    anyOf,
    minItems,
  } = asSchema(schema)
  if (fixed !== undefined) return fixed
  if (Array.isArray(choices) && choices.length > 0) return mentioned(choices, hints) ?? choices[0]
  if (usual !== undefined) return usual
  if (Array.isArray(anyOf)) return sampleOf(anyOf[0], hints, depth + 1)
  switch (Array.isArray(type) ? type[0] : (type ?? (properties === undefined ? 'string' : 'object'))) {
    case 'object':
      return depth > MAX_DEPTH ? {} : sampleObject(asSchema(properties), hints, depth)
    case 'array':
      return items === undefined || !minItems || depth > MAX_DEPTH ? [] : [sampleOf(items, hints, depth + 1)]
    case 'integer':
      return Math.trunc(hints.number)
    case 'number':
      return hints.number
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return hints.subject
  }
}

const asSchema = (value: unknown): Schema => (typeof value === 'object' && value !== null ? value : {})

const sampleObject = (properties: object, hints: Hints, depth: number) =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, sampleOf(schema, hints, depth + 1)]),
  )

const mentioned = (choices: readonly unknown[], { lowerCase }: Hints) =>
  choices.find(choice => typeof choice === 'string' && lowerCase.includes(choice.toLowerCase()))

function hintsOf(text: string): Hints {
  const quoted = /["“'«]([^"”'»]+)["”'»]/u.exec(text)?.[1]
  const after = /.*\b(?:for|in|of|about|with)\s+([^.?!,;]+)/isu.exec(text)?.[1]
  return {
    number: Number(/-?\d+(\.\d+)?/.exec(text)?.[0] ?? 1),
    subject: (quoted ?? after ?? text).trim(),
    lowerCase: text.toLowerCase(),
  }
}
