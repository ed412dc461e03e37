/** A run id that frameworks append to a root span's name: an underscore and a UUID. */
const runId = /_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/**
 * What a root span calls its trace (spec 2, OTLP rule 6).
 *
 * @returns null when nothing is left to call it by.
 */
export function traceName(rootSpanName: string): string | null {
  const name = rootSpanName.replace(runId, '').trim()
  return name === '' ? null : name
}
