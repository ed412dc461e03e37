const known = new Map<string, string>()
const MOST_KNOWN = 4_096
const MOST_CHARACTERS = 128

/** JSON.stringify of a text that comes again with many calls, as ids, models and finish reasons do: a quarter of it. */
export function jsonString(text: string): string {
  const found = known.get(text)
  if (found !== undefined) return found
  const json = JSON.stringify(text)
  if (text.length <= MOST_CHARACTERS) {
    if (known.size >= MOST_KNOWN) known.clear()
    known.set(text, json)
  }
  return json
}
