/** More rounds of percent-decoding than any server behind this one makes. */
const decodingRounds = 3

/**
 * Whether a path could be read as one below `/internal` by whatever reads it next: percent-encoded, also twice, with
 * dot segments, doubled or back slashes, path parameters, encoded query marks, other letter case. It errs on the side of yes.
 */
export function isInternalPath(path: string): boolean {
  let seen = path
  for (let round = 0; round <= decodingRounds; round++) {
    if (firstSegment(seen) === 'internal') return true
    const decoded = seen.replace(/%([0-9a-f]{2})/gi, (_, hex) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    )
    if (decoded === seen) return false
    seen = decoded
  }
  return false
}

/** The first segment once dot segments are resolved. */
function firstSegment(path: string): string | undefined {
  const segments: string[] = []
  for (const raw of path.split(/[/\\]+/)) {
    // White space and control characters too: some readers drop them.
    const segment = raw
      .replace(/[;?#].*$/s, '')
      .replace(/[\0-\x20\x7f]/g, '')
      .toLowerCase()
    if (segment === '..') segments.pop()
    else if (segment !== '' && segment !== '.') segments.push(segment)
  }
  return segments[0]
}
