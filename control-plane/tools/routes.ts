import { randomUUID } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import type { Result } from '../../shared/contract/endpoint.js'
import * as contract from '../../shared/contract/tools.js'
import { versionNumberOf } from '../../shared/contract/versions.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { promoteAlias, versionNotFound } from './aliases.js'
import { addTool, changeTool, removeTool, requireTool } from './change-tool.js'
import { type Committed, commitVersion } from './commit-version.js'
import { countTools, listToolRows, type ToolRow } from './queries.js'
import { requireTools } from './resolve.js'
import { syncVersion } from './sync.js'
import { findToolVersion, listToolVersionRows, type ToolAliasRow } from './version-queries.js'

/** Tools, their versions and aliases (spec 1, tools; spec 4, sections 6 and 9). */
export function registerTools(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.createTool, async ({ body, principal }) => {
    const { name, description = null } = body
    return shown(await addTool(deps, principal, { id: randomUUID(), name, description }))
  })

  route(app, deps, contract.listTools, async ({ query, principal }) => {
    const { page, limit } = query
    const search = query.search?.trim() || null
    const { teamId } = principal
    const [total, rows] = await Promise.all([
      countTools(deps.sql, teamId, search),
      listToolRows(deps.sql, teamId, search, { limit, offset: (page - 1) * limit }),
    ])
    return { data: rows.map(shown), total, page, limit }
  })

  route(app, deps, contract.readTool, async ({ params, principal }) =>
    shown(await requireTool(deps.sql, principal.teamId, params.id)),
  )

  route(app, deps, contract.updateTool, async ({ params, body, principal }) =>
    shown(await changeTool(deps, principal, params.id, body)),
  )

  route(app, deps, contract.deleteTool, async ({ params, principal }) => {
    await removeTool(deps, principal, params.id)
    return undefined
  })

  registerVersions(app, deps)
  registerServing(app, deps)
}

function registerVersions(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.commitToolVersion, async ({ params, body, principal }) => {
    const { description = null, changelog = null } = body
    const input = { ...body, description, changelog }
    const { warnings, ...committed } = await commitVersion(deps, principal, params.id, input)
    return { ...committedBody(committed), ...(warnings.length > 0 && { warnings }) }
  })

  route(app, deps, contract.listToolVersions, async ({ params, query, principal }) => {
    const { page, limit } = query
    const tool = await requireTool(deps.sql, principal.teamId, params.id)
    const offset = (page - 1) * limit
    const rows = await listToolVersionRows(deps.sql, principal.teamId, tool.id, { limit, offset })
    return { data: rows.map(dated), total: tool.versionCount, page, limit }
  })

  route(app, deps, contract.readToolVersion, async ({ params, principal }) => {
    const tool = await requireTool(deps.sql, principal.teamId, params.id)
    const number = versionNumberOf(params.version_number)
    const version =
      number === null ? null : await findToolVersion(deps.sql, principal.teamId, tool.id, number)
    if (version === null) throw versionNotFound(params.version_number)
    return dated(version)
  })
}

function registerServing(app: FastifyInstance, deps: Deps): void {
  route(app, deps, contract.promoteToolAlias, async ({ params, body, principal }) =>
    aliasBody(await promoteAlias(deps, principal, params.id, params.alias, body.versionNumber)),
  )

  route(app, deps, contract.syncTool, async ({ params, body, principal }) => {
    const { description = null, ...rest } = body
    const { created, superseded, ...committed } = await syncVersion(deps, principal, params.id, {
      ...rest,
      description,
    })
    return { created, version: committedBody(committed), superseded }
  })

  route(app, deps, contract.resolveTools, async ({ body, principal }) => {
    const refs = body.refs.map(({ name, alias, version }) => ({
      name,
      alias: alias ?? null,
      version: version ?? null,
    }))
    const tools = await requireTools(deps.sql, principal.teamId, refs)
    return { data: tools.map(({ versionId: _, ...tool }) => tool) }
  })
}

const dated = <R extends { createdAt: Date }>(row: R) => ({ ...row, createdAt: row.createdAt.toISOString() })

const shown = (row: ToolRow): Result<typeof contract.readTool> => ({
  ...dated(row),
  callable: row.executorType !== null,
})

const aliasBody = (row: ToolAliasRow) => ({ ...row, updatedAt: row.updatedAt.toISOString() })

const committedBody = ({ version, aliases }: Committed) => ({
  ...dated(version),
  ...(aliases !== null && { aliases: aliases.map(aliasBody) }),
})
