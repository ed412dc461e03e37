import { notFound } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import { findTraceSettings } from '../settings/queries.js'
import { hiddenKeys } from './payload.js'

/** What of a team's settings, and of the clock, a reported span needs. */
export interface Capture {
  teamId: string
  /** Whether content is stored when the trace does not say. */
  payloads: boolean
  /** The team's `redactKeys`, lower-cased. */
  hidden: ReadonlySet<string>
  /** Receipt of the request. */
  nowMs: number
}

export async function captureOf(deps: Pick<Deps, 'sql' | 'now'>, teamId: string): Promise<Capture> {
  const settings = await findTraceSettings(deps.sql, teamId)
  if (settings === null) throw notFound('Team')
  const { capturePayloads, redactKeys } = settings
  return { teamId, payloads: capturePayloads, hidden: hiddenKeys(redactKeys), nowMs: deps.now() }
}
