import type { Logger } from '../../shared/log/logger.js'
import { createRecentMap } from '../../shared/memory/recent-map.js'
import type { ControlPlaneClient } from '../control-plane-client.js'

export type TraceOwner = 'own' | 'foreign' | 'unknown'

const MOST_TRACES = 20_000
/** A trace that nobody has is being made by the call that asks; its next calls need not ask until it is ingested. */
const UNKNOWN_FOR_MS = 10_000
/** A call does not wait longer for this: ingestion checks the owner again. */
const WAIT_MS = 500

/**
 * Whose trace an id names, remembered: owners never change.
 *
 * Failure stance: open. Without an answer the id counts as unknown; ingestion never writes into another team's trace.
 */
export function createTraceOwners(client: Pick<ControlPlaneClient, 'traceOwner'>, log: Logger) {
  const known = createRecentMap<{ owner: TraceOwner; untilMs: number }>(MOST_TRACES)

  async function ask(key: string, teamId: string, traceId: string): Promise<TraceOwner> {
    const owner = await client.traceOwner(teamId, traceId)
    const untilMs = owner === 'unknown' ? performance.now() + UNKNOWN_FOR_MS : Number.POSITIVE_INFINITY
    known.set(key, { owner, untilMs })
    return owner
  }

  return async (teamId: string, traceId: string): Promise<TraceOwner> => {
    const key = `${teamId}/${traceId}`
    const remembered = known.get(key)
    if (remembered !== undefined && performance.now() < remembered.untilMs) return remembered.owner
    try {
      return await Promise.race([ask(key, teamId, traceId), unknownAfter(WAIT_MS)])
    } catch (error) {
      log.debug({ err: error, traceId }, 'directory: the owner of a trace could not be asked for')
      return 'unknown'
    }
  }
}

const unknownAfter = (ms: number) =>
  new Promise<TraceOwner>(resolve => setTimeout(resolve, ms, 'unknown').unref())
