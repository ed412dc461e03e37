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

/** Strings and numbers come from the user's text: its first number, and the words after "for", "in", "of" or "about". */
export function sample(schema: unknown, text: string, depth = 0): unknown {
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
  if (Array.isArray(choices) && choices.length > 0) return mentioned(choices, text) ?? choices[0]
  if (usual !== undefined) return usual
  if (Array.isArray(anyOf)) return sample(anyOf[0], text, depth + 1)
  switch (Array.isArray(type) ? type[0] : (type ?? (properties === undefined ? 'string' : 'object'))) {
    case 'object':
      return depth > MAX_DEPTH ? {} : sampleObject(asSchema(properties), text, depth)
    case 'array':
      return items === undefined || !minItems || depth > MAX_DEPTH ? [] : [sample(items, text, depth + 1)]
    case 'integer':
      return Math.trunc(numberIn(text))
    case 'number':
      return numberIn(text)
    case 'boolean':
      return true
    case 'null':
      return null
    default:
      return subjectOf(text)
  }
}

const asSchema = (value: unknown): Schema => (typeof value === 'object' && value !== null ? value : {})

const sampleObject = (properties: object, text: string, depth: number) =>
  Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, sample(schema, text, depth + 1)]),
  )

const mentioned = (choices: readonly unknown[], text: string) =>
  choices.find(choice => typeof choice === 'string' && text.toLowerCase().includes(choice.toLowerCase()))

const numberIn = (text: string) => Number(/-?\d+(\.\d+)?/.exec(text)?.[0] ?? 1)

function subjectOf(text: string): string {
  const quoted = /["“'«]([^"”'»]+)["”'»]/u.exec(text)?.[1]
  const after = /.*\b(?:for|in|of|about|with)\s+([^.?!,;]+)/isu.exec(text)?.[1]
  return (quoted ?? after ?? text).trim()
}
