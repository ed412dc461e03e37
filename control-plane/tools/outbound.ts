import type { Deps } from '../deps.js'
import { callUrl, type OutboundRequest, type OutboundResponse } from './outbound-call.js'
import { type OutboundRules, refusedAddress } from './outbound-url.js'

const rulesOf = ({ config }: Pick<Deps, 'config'>): OutboundRules => ({
  allowed: config.TOOL_ALLOW_PRIVATE_HOSTS,
})

/**
 * Why an http executor's URL cannot be called: a sentence to follow `The executor's URL cannot be called:` (spec 1, tool
 * versions), or null when it may be. Said at commit; every call checks again, on the address that it dials.
 */
export const refusedUrl = (deps: Pick<Deps, 'config'>, url: string): Promise<string | null> =>
  refusedAddress(url, rulesOf(deps))

/** Sends an executor's request. @throws OutboundError */
export const callOutbound = (
  deps: Pick<Deps, 'config'>,
  request: OutboundRequest,
  signal: AbortSignal,
): Promise<OutboundResponse> => callUrl(rulesOf(deps), request, signal)
