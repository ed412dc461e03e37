import type { FastifyInstance, FastifyReply } from 'fastify'
import * as contract from '../../shared/contract/tool-execution.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { analyseTool } from './analytics.js'
import { executeTool } from './execute.js'
import { createTurnstile } from './turnstile.js'

/** Executions of one team at once: each may hold a socket and up to a megabyte for 15 seconds. */
const AT_ONCE_PER_TEAM = 64

/** Tool execution and its analytics (spec 4, section 6). */
export function registerToolExecution(app: FastifyInstance, deps: Deps): void {
  const turnstile = createTurnstile(AT_ONCE_PER_TEAM)

  route(app, deps, contract.executeTool, ({ params, body, principal, reply }) =>
    turnstile(principal.teamId, () =>
      executeTool(deps, principal.teamId, params.id.toLowerCase(), body, goneSignal(reply)),
    ),
  )

  route(app, deps, contract.toolAnalytics, ({ params, query, principal }) =>
    analyseTool(deps, principal.teamId, params.id, query),
  )
}

/** Aborted when the caller's connection closes before it has its answer. */
function goneSignal(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort()
  })
  return controller.signal
}
