import { addedUp } from '../traces/latency.js'
import type { TraceState } from '../traces/trace-facets.js'

/** What a change of traces changes in one session's row. */
export interface SessionDelta {
  teamId: string
  sessionId: string
  traceCount: number
  spanCount: number
  errorCount: number
  totalCostNano: number
  promptTokens: number
  completionTokens: number
  totalTokens: number
  /** Histogram of the spans' durations: bucket, spans and microseconds after each other; may be negative. */
  latencies: number[]
  firstAtMs: number
  lastAtMs: number
  lastStartedAtMs: number
  /** A trace left the session or moved in time: its ends have to be looked up. */
  isStale: boolean
}

type InSession = TraceState & { sessionId: string }
/** `isLonger`: a trace's last span starts later than before, which may be all that a replaced span changes. */
type Changed = SessionDelta & { isLonger: boolean }

/** The difference between traces as they were and as they are. */
export function sessionDeltas(before: readonly TraceState[], after: readonly TraceState[]): SessionDelta[] {
  const deltas = new Map<string, Changed>()
  const now = new Map(after.map(state => [state.id, state]))
  const add = (state: InSession, by: 1 | -1): Changed => {
    const key = `${state.teamId} ${state.sessionId}`
    const delta = deltas.get(key) ?? noChange(state)
    deltas.set(key, delta)
    addTrace(delta, state, by)
    return delta
  }
  for (const state of before) {
    if (!isInSession(state)) continue
    const is = now.get(state.id)
    const delta = add(state, -1)
    delta.isStale ||= !staysIn(state, is)
    delta.isLonger ||= is !== undefined && is.lastStartedAtMs > state.lastStartedAtMs
  }
  for (const state of after) if (isInSession(state)) add(state, 1)
  return [...deltas.values()].flatMap(({ isLonger, ...sums }) => {
    const delta = { ...sums, latencies: addedUp(sums.latencies) }
    return isLonger || changesAnything(delta) ? [delta] : []
  })
}

const isInSession = (state: TraceState): state is InSession => state.sessionId !== null

/** Whether a session's ends are where they were or further apart. */
const staysIn = (before: InSession, after: TraceState | undefined) =>
  after !== undefined &&
  after.sessionId === before.sessionId &&
  after.startedAtMs === before.startedAtMs &&
  after.lastStartedAtMs >= before.lastStartedAtMs

const noChange = ({ teamId, sessionId, startedAtMs, lastStartedAtMs }: InSession): Changed => ({
  teamId,
  sessionId,
  traceCount: 0,
  spanCount: 0,
  errorCount: 0,
  totalCostNano: 0,
  promptTokens: 0,
  completionTokens: 0,
  totalTokens: 0,
  latencies: [],
  firstAtMs: startedAtMs,
  lastAtMs: startedAtMs,
  lastStartedAtMs,
  isStale: false,
  isLonger: false,
})

function addTrace(delta: Changed, state: InSession, by: 1 | -1): void {
  delta.traceCount += by
  delta.spanCount += by * state.spanCount
  delta.errorCount += by * state.errorCount
  delta.totalCostNano += by * (state.totalCostNano ?? 0)
  delta.promptTokens += by * state.promptTokens
  delta.completionTokens += by * state.completionTokens
  delta.totalTokens += by * state.totalTokens
  const { latencies } = state
  for (let i = 0; i < latencies.length; i += 3) {
    delta.latencies.push(latencies[i]!, by * latencies[i + 1]!, by * latencies[i + 2]!)
  }
  delta.firstAtMs = Math.min(delta.firstAtMs, state.startedAtMs)
  delta.lastAtMs = Math.max(delta.lastAtMs, state.startedAtMs)
  delta.lastStartedAtMs = Math.max(delta.lastStartedAtMs, state.lastStartedAtMs)
}

const changesAnything = (delta: SessionDelta): boolean =>
  delta.isStale ||
  delta.latencies.length > 0 ||
  [
    delta.traceCount,
    delta.spanCount,
    delta.errorCount,
    delta.totalCostNano,
    delta.promptTokens,
    delta.completionTokens,
    delta.totalTokens,
  ].some(change => change !== 0)
