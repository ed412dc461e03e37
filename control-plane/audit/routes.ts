import type { FastifyInstance } from 'fastify'
import * as contract from '../../shared/contract/audit.js'
import { isUuid } from '../../shared/contract/common.js'
import { notFound } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { ownTeam } from '../teams/own-team.js'
import {
  type AuditEventRow,
  type AuditFilter,
  hasActivePrompt,
  hasActiveTool,
  listAuditActors,
  listAuditEvents,
} from './queries.js'

/** The audit trail of a prompt, a tool and the team (spec 1, Audit). */
export function registerAudit(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.listPromptAudit, async ({ principal: { teamId }, params: { id }, query }) => {
    if (!isUuid(id) || !(await hasActivePrompt(deps.sql, teamId, id))) throw notFound('Prompt')
    return trail(deps, teamId, { promptId: id }, query, promptItem)
  })

  route(app, deps, contract.listToolAudit, async ({ principal: { teamId }, params: { id }, query }) => {
    if (!isUuid(id) || !(await hasActiveTool(deps.sql, teamId, id))) throw notFound('Tool')
    return trail(deps, teamId, { toolId: id }, query, toolItem)
  })

  route(app, deps, contract.listTeamAudit, async ({ principal, params, query }) => {
    const filter = { events: query.event, actorId: query.actorId }
    return trail(deps, ownTeam(principal, params.id), filter, query, teamItem)
  })

  route(app, deps, contract.listAuditActors, async ({ principal, params }) => ({
    data: await listAuditActors(deps.sql, ownTeam(principal, params.id)),
  }))
}

async function trail<Item>(
  deps: Deps,
  teamId: string,
  filter: AuditFilter,
  { page, limit }: { page: number; limit: number },
  shown: (row: AuditEventRow) => Item,
) {
  const { rows, total } = await listAuditEvents(deps.sql, teamId, filter, {
    limit,
    offset: (page - 1) * limit,
  })
  return { data: rows.map(shown), total, page, limit }
}

const promptItem = ({ id, event, metadata, createdAt }: AuditEventRow) => ({
  id,
  event,
  metadata,
  createdAt: createdAt.toISOString(),
})

const toolItem = (row: AuditEventRow) => ({ ...promptItem(row), promptId: row.promptId })

const teamItem = (row: AuditEventRow) => ({ ...toolItem(row), actor: row.actor, target: row.target })
