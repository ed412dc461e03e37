import type { Sql } from '../db/sql.js'
import {
  type HeldSpan,
  insertMissingSpans,
  insertSpans,
  listHeldSpans,
  type PlacedSpan,
  type SpanJson,
  type SpanKey,
  updateSpans,
} from './ingest-queries.js'
import type { Home } from './owners.js'
import { cutText } from './payload.js'
import { rolledSpan, type SpanChange } from './span-rollup.js'
import { MAX_REFERENCE, type SpanWrite } from './span-write.js'

/** A write's spans by key: one each, and in which rows of their traces. */
export type Placed = ReadonlyMap<string, PlacedSpan>

/** What a write did to the spans of its traces. */
export interface StoredSpans {
  created: readonly PlacedSpan[]
  /** Those that were stored already. Empty where such spans are kept: they say nothing then. */
  held: readonly PlacedSpan[]
  /** Those of them that are different now. */
  changed: readonly ChangedSpan[]
}

interface ChangedSpan extends PlacedSpan {
  /** As it was. */
  before: HeldSpan
}

/** A trace belongs to one team, so its id and a span's reference name a span. */
export const keyOf = ({ traceId, spanId }: SpanKey): string => `${traceId} ${spanId}`

/** One span per key. Of two in one write the one stays that would, had they come in two. */
export function placeSpans(
  spans: readonly SpanWrite[],
  homes: ReadonlyMap<string, Home>,
  nowMs: number,
  repeated: 'keep' | 'replace',
): Placed {
  const placed = new Map<string, PlacedSpan>()
  for (const [place, given] of spans.entries()) {
    const span = bounded(given)
    const key = keyOf({ traceId: span.trace.id, spanId: span.spanId })
    const earlier = placed.get(key)
    if (earlier !== undefined && repeated === 'keep') continue
    const position = earlier?.position ?? nowMs * 4096 + (place % 4096)
    const { receivedAtMs } = homes.get(span.trace.id)!
    placed.set(key, { span, receivedAtMs, position, json: jsonOf(span) })
  }
  return placed
}

const jsonOf = ({ attributes, input, output, variables }: SpanWrite): SpanJson => ({
  attributes: jsonText(attributes),
  input: jsonText(input),
  output: jsonText(output),
  variables: jsonText(variables),
})

const jsonText = (value: unknown) => (value === null ? null : (JSON.stringify(value) ?? null))

/** Index keys have bounds, a blank label is none, and tokens that were counted have a total. */
const bounded = (span: SpanWrite): SpanWrite => ({
  ...span,
  model: label(span.model),
  provider: label(span.provider),
  errorCode: label(span.errorCode),
  promptVersionId: span.promptVersionId?.toLowerCase() ?? null,
  totalTokens: span.totalTokens ?? totalOf(span),
})

const label = (text: string | null) => (text === null || text === '' ? null : cutText(text, MAX_REFERENCE))

const totalOf = ({ promptTokens, completionTokens }: SpanWrite) =>
  promptTokens === null && completionTokens === null ? null : (promptTokens ?? 0) + (completionTokens ?? 0)

/** @param known traces that were there before this transaction; the caller holds them all. */
export async function storeSpans(
  tx: Sql,
  placed: Placed,
  known: readonly Home[],
  repeated: 'keep' | 'replace',
): Promise<StoredSpans> {
  const knownIds = new Set(known.map(home => home.id))
  const candidates = [...placed.values()].filter(({ span }) => knownIds.has(span.trace.id))
  const before = repeated === 'keep' || candidates.length === 0 ? [] : await listHeldSpans(tx, candidates)
  const heldByKey = new Map(before.map(span => [keyOf(span), span]))
  const held = [...heldByKey.keys()].map(key => placed.get(key)!)
  const changedKeys = held.length === 0 ? [] : await updateSpans(tx, held)
  const changed = changedKeys.map(keyOf).map(key => ({ ...placed.get(key)!, before: heldByKey.get(key)! }))
  const fresh = held.length === 0 ? placed : new Map([...placed].filter(([key]) => !heldByKey.has(key)))
  const mayBeStored = repeated === 'keep' && candidates.length > 0
  return { created: await storeFresh(tx, fresh, mayBeStored), held, changed }
}

/** @returns those that were not there. */
async function storeFresh(tx: Sql, fresh: Placed, mayBeStored: boolean): Promise<readonly PlacedSpan[]> {
  const spans = [...fresh.values()]
  if (mayBeStored) return (await insertMissingSpans(tx, spans)).map(key => fresh.get(keyOf(key))!)
  if (spans.length > 0) await insertSpans(tx, spans)
  return spans
}

/** What came and what went, for the sums. */
export function spanChanges({ created, changed }: StoredSpans): SpanChange[] {
  const comes = [...created, ...changed].map(
    ({ span, receivedAtMs }): SpanChange => ({ span: rolledSpan(span), sign: 1, receivedAtMs }),
  )
  const goes = changed.map(
    ({ before, receivedAtMs }): SpanChange => ({ span: before, sign: -1, receivedAtMs }),
  )
  return [...comes, ...goes]
}
