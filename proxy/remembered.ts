const MOST_KNOWN = 4_096
const MOST_CHARACTERS = 128

/** `make`, but what it made of a text is kept for a while: for texts that come again with many calls. */
export function remembered(make: (text: string) => string): (text: string) => string {
  const known = new Map<string, string>()
  return text => {
    const found = known.get(text)
    if (found !== undefined) return found
    const made = make(text)
    if (text.length <= MOST_CHARACTERS) {
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(text, made)
    }
    return made
  }
}
