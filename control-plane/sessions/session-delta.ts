import type { TraceState } from '../traces/trace-facets.js'

/** What a change of traces changes in one session's row. */
export interface SessionDelta {
  teamId: string
  sessionId: string
  traceCount: number
  totalCostNano: number
  totalTokens: number
  firstAtMs: number
  lastAtMs: number
  /** A trace left the session or moved in time: its ends have to be looked up. */
  isStale: boolean
}

type InSession = TraceState & { sessionId: string }

/** The difference between traces as they were and as they are. */
export function sessionDeltas(before: readonly TraceState[], after: readonly TraceState[]): SessionDelta[] {
  const deltas = new Map<string, SessionDelta>()
  const now = new Map(after.map(state => [state.id, state]))
  const add = (state: InSession, by: 1 | -1, isStale: boolean) => {
    const { teamId, sessionId, startedAtMs } = state
    const key = `${teamId} ${sessionId}`
    const delta = deltas.get(key) ?? {
      ...{ teamId, sessionId, traceCount: 0, totalCostNano: 0, totalTokens: 0, isStale: false },
      ...{ firstAtMs: startedAtMs, lastAtMs: startedAtMs },
    }
    deltas.set(key, delta)
    delta.traceCount += by
    delta.totalCostNano += by * (state.totalCostNano ?? 0)
    delta.totalTokens += by * state.totalTokens
    delta.firstAtMs = Math.min(delta.firstAtMs, startedAtMs)
    delta.lastAtMs = Math.max(delta.lastAtMs, startedAtMs)
    delta.isStale ||= isStale
  }
  for (const state of before) {
    const { sessionId, startedAtMs } = now.get(state.id) ?? {}
    const stays = sessionId === state.sessionId && startedAtMs === state.startedAtMs
    if (isInSession(state)) add(state, -1, !stays)
  }
  for (const state of after) if (isInSession(state)) add(state, 1, false)
  return [...deltas.values()].filter(
    delta => delta.isStale || delta.traceCount !== 0 || delta.totalCostNano !== 0 || delta.totalTokens !== 0,
  )
}

const isInSession = (state: TraceState): state is InSession => state.sessionId !== null
