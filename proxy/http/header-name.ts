const notToken = /[^!#$%&'*+\-.^_`|~0-9a-z]/

/** Names seen before: the same few come with every request, and a look-up is a fifth of a regular expression. */
const known = new Set<string>()
/** Of names up to so many characters; a client that sends others all the time is judged by the expression. */
const MOST_KNOWN = 512
const MOST_CHARACTERS = 64

/** Whether a name, in lower case, is a token (RFC 9110, section 5.1). */
export function isHeaderName(name: string): boolean {
  if (known.has(name)) return true
  if (name === '' || notToken.test(name)) return false
  if (known.size < MOST_KNOWN && name.length <= MOST_CHARACTERS) known.add(name)
  return true
}
