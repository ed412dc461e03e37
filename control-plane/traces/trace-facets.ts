import { hash } from 'node:crypto'
import type { TraceStatus } from '../../shared/contract/traces.js'

const HOUR_MS = 3_600_000
/** UTF-16 units. Longer values are no facets, and PostgreSQL takes index keys of up to 2,704 bytes. */
export const MAX_FACET_VALUE = 512

/** A trace's row as the sums over traces see it. */
export interface TraceState {
  id: string
  teamId: string
  receivedAtMs: number
  name: string | null
  status: TraceStatus
  hasWarning: boolean
  sessionId: string | null
  startedAtMs: number
  /** The start of its last span. */
  lastStartedAtMs: number
  spanCount: number
  errorCount: number
  totalCostNano: number | null
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** See `TraceDelta`; empty for a trace in no session, of which nobody asks. */
  latencies: number[]
  tags: string[]
  models: string[]
  providers: string[]
  errorTypes: string[]
  errorCodes: string[]
  promptVersionIds: string[]
  /** Of those versions. */
  promptIds: string[]
  metadataKeys: string[]
}

/** What traces are counted by in `trace_facets`. */
export type Dimension =
  | 'all'
  | 'status'
  | 'warning'
  | 'model'
  | 'provider'
  | 'tag'
  | 'metadata_key'
  | 'error_type'
  | 'error_code'
  | 'prompt_version'
  | 'prompt'
  | typeof CHANGE

/**
 * No facet but a version: every write adds to the hours of the traces that it touches, whatever it changes of them, in
 * its transaction, and nothing ever takes away. So as long as the sum over a day is the same, two snapshots hold the same
 * writes to that day's traces, in whatever order they were committed.
 */
export const CHANGE = 'change'

/** A row of `trace_facet_deltas`. */
export interface FacetDelta {
  teamId: string
  atMs: number
  dimension: Dimension
  value: string
  traces: number
}

/**
 * What a change of traces changes in the counts, and a `CHANGE` for each of them. A trace's hour never changes, it is that
 * of its receipt.
 */
export function facetDeltas(before: readonly TraceState[], after: readonly TraceState[]): FacetDelta[] {
  const sums = new Map<string, FacetDelta>()
  const add = ({ teamId, receivedAtMs }: TraceState, dimension: Dimension, value: string, traces: number) => {
    const atMs = Math.floor(receivedAtMs / HOUR_MS) * HOUR_MS
    const key = `${teamId} ${atMs} ${dimension} ${value}`
    const held = sums.get(key)
    if (held === undefined) sums.set(key, { teamId, atMs, dimension, value, traces })
    else held.traces += traces
  }
  const count = (state: TraceState, by: 1 | -1) => {
    for (const [dimension, values] of facetsOf(state)) {
      for (const value of values) if (value.length <= MAX_FACET_VALUE) add(state, dimension, value, by)
    }
    add(state, CHANGE, '', 1)
  }
  for (const state of before) count(state, -1)
  for (const state of after) count(state, 1)
  return [...sums.values()].filter(delta => delta.traces !== 0)
}

const facetsOf = (state: TraceState): [Dimension, readonly string[]][] => [
  ['all', ['']],
  ['status', [state.status]],
  ['warning', state.hasWarning ? ['true'] : []],
  ['model', state.models],
  ['provider', state.providers],
  ['tag', state.tags],
  ['metadata_key', state.metadataKeys],
  ['error_type', state.errorTypes],
  ['error_code', state.errorCodes],
  ['prompt_version', state.promptVersionIds],
  ['prompt', state.promptIds],
]

/** Dimensions of `traces.terms`. */
type TermDimension = 'model' | 'tag' | 'metadata' | 'error_type' | 'error_code' | 'prompt_version'

/**
 * A value of a team as an integer of 48 bits, which JSON and bigint both hold: what `traces.terms` is made of and
 * searched by. Two values may share one by chance, so it only ever narrows a search down.
 */
export const termOf = (teamId: string, dimension: TermDimension, value: string): number =>
  Number.parseInt(hash('sha1', `${teamId} ${dimension} ${value}`, 'hex').slice(0, 12), 16)

/** Metadata is found by top-level pairs of text, number or boolean, as the text that jsonb prints. */
export const metadataTerm = (teamId: string, key: string, value: string): number =>
  termOf(teamId, 'metadata', JSON.stringify([key, value]))

export interface TermSource {
  teamId: string
  tags: readonly string[]
  models: readonly string[]
  errorTypes: readonly string[]
  errorCodes: readonly string[]
  promptVersionIds: readonly string[]
  metadata: Readonly<Record<string, unknown>>
}

/** The terms of what a write says about a trace. */
export function termsOf(said: TermSource): number[] {
  const of = (dimension: TermDimension, values: readonly string[]) =>
    values.map(value => termOf(said.teamId, dimension, value))
  const pairs = Object.entries(said.metadata).filter(
    ([, value]) => value === null || typeof value !== 'object',
  )
  return [
    ...of('model', said.models),
    ...of('tag', said.tags),
    ...of('error_type', said.errorTypes),
    ...of('error_code', said.errorCodes),
    ...of('prompt_version', said.promptVersionIds),
    ...pairs.map(([key, value]) => metadataTerm(said.teamId, key, String(value))),
  ]
}
