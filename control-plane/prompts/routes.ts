import type { FastifyInstance } from 'fastify'
import { isUuid } from '../../shared/contract/common.js'
import {
  commitPromptVersion,
  createPrompt,
  deletePrompt,
  deletePromptAlias,
  findPromptByName,
  findPromptVersion,
  listPromptAliases,
  listPrompts,
  listPromptVersions,
  promotePromptAlias,
  readPrompt,
  readPromptVersion,
  renderPromptVersion,
  updatePrompt,
} from '../../shared/contract/prompts.js'
import { versionNumberOf } from '../../shared/contract/versions.js'
import { notFound } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { resolveBindings } from '../prompt-tools/resolve-bindings.js'
import { promoteAlias, removeAlias } from './aliases.js'
import { addPrompt, changePrompt, removePrompt } from './change-prompt.js'
import { commitVersion } from './commit-version.js'
import { requirePrompt, versionNotFound } from './missing.js'
import {
  findPromptByName as findNewestPrompt,
  listPromptAliasRows,
  listPromptRows,
  type PromptAliasRow,
  type PromptRow,
} from './queries.js'
import { renderStored } from './render.js'
import {
  findVersionById,
  findVersionByNumber,
  listPromptVersionRows,
  type PromptVersionRow,
} from './version-queries.js'

/** Prompts, their versions and aliases, and what they render to (spec 1; spec 4, section 6). */
export function registerPrompts(app: FastifyInstance, deps: Deps): void {
  registerContainers(app, deps)
  registerVersions(app, deps)
  registerAliases(app, deps)

  route(app, deps, renderPromptVersion, async ({ params, body, principal }) =>
    renderStored(deps.sql, principal.teamId, params.id, body),
  )
}

function registerContainers(app: FastifyInstance, deps: Deps): void {
  route(app, deps, createPrompt, async ({ body, principal }) => {
    const { name, description = null } = body
    return promptOf(await addPrompt(deps, principal, { name, description }))
  })

  route(app, deps, listPrompts, async ({ query, principal }) => {
    const { search, page, limit } = query
    const offset = (page - 1) * limit
    const { rows, total } = await listPromptRows(deps.sql, principal.teamId, search, { limit, offset })
    const data = rows.map(({ id, name, description, createdAt }) => ({
      id,
      name,
      description,
      createdAt: createdAt.toISOString(),
    }))
    return { data, total, page, limit }
  })

  route(app, deps, findPromptByName, async ({ params, principal }) => {
    const row = await findNewestPrompt(deps.sql, principal.teamId, params.name)
    if (row === null) throw notFound('Prompt')
    return promptOf(row)
  })

  route(app, deps, readPrompt, async ({ params, principal }) =>
    promptOf(await requirePrompt(deps.sql, principal.teamId, params.id)),
  )

  route(app, deps, updatePrompt, async ({ params, body, principal }) =>
    promptOf(await changePrompt(deps, principal, params.id, body)),
  )

  route(app, deps, deletePrompt, async ({ params, principal }) => {
    await removePrompt(deps, principal, params.id)
    return undefined
  })
}

function registerVersions(app: FastifyInstance, deps: Deps): void {
  route(app, deps, commitPromptVersion, async ({ params, body, principal }) => {
    const { messages, model = null } = body
    const { aliases, ...version } = await commitVersion(deps, principal, params.id, { messages, model })
    return { ...versionOf(version), ...(aliases !== undefined && { aliases: aliases.map(aliasOf) }) }
  })

  route(app, deps, listPromptVersions, async ({ params, query, principal }) => {
    const { teamId } = principal
    const prompt = await requirePrompt(deps.sql, teamId, params.id)
    const { page, limit } = query
    const offset = (page - 1) * limit
    const { rows, total } = await listPromptVersionRows(deps.sql, teamId, prompt.id, { limit, offset })
    return { data: rows.map(versionOf), total, page, limit }
  })

  route(app, deps, readPromptVersion, async ({ params, principal }) => {
    const { teamId } = principal
    const prompt = await requirePrompt(deps.sql, teamId, params.id)
    const number = versionNumberOf(params.version_number)
    const row = number === null ? null : await findVersionByNumber(deps.sql, teamId, prompt.id, number)
    if (row === null) throw versionNotFound(params.version_number)
    return versionOf(row)
  })

  route(app, deps, findPromptVersion, async ({ params: { versionId }, principal: { teamId } }) => {
    const row = isUuid(versionId) ? await findVersionById(deps.sql, teamId, versionId) : null
    if (row === null) throw notFound('Prompt version')
    const { promptId, promptName, versionNumber, messages, variables, model } = row
    const { tools } = await resolveBindings(deps.sql, teamId, promptId, null)
    return { promptId, promptName, versionNumber, messages, variables, tools, model }
  })
}

function registerAliases(app: FastifyInstance, deps: Deps): void {
  route(app, deps, listPromptAliases, async ({ params, principal }) => {
    const prompt = await requirePrompt(deps.sql, principal.teamId, params.id)
    const rows = await listPromptAliasRows(deps.sql, principal.teamId, prompt.id)
    return { data: rows.map(aliasOf) }
  })

  route(app, deps, promotePromptAlias, async ({ params, body, principal }) => {
    const { versionNumber } = body
    return aliasOf(await promoteAlias(deps, principal, params.id, { alias: params.alias, versionNumber }))
  })

  route(app, deps, deletePromptAlias, async ({ params, principal }) => {
    await removeAlias(deps, principal, params.id, params.alias)
    return undefined
  })
}

const promptOf = (row: PromptRow) => ({ ...row, createdAt: row.createdAt.toISOString() })

const versionOf = <R extends PromptVersionRow>(row: R) => ({ ...row, createdAt: row.createdAt.toISOString() })

const aliasOf = (row: PromptAliasRow) => ({ ...row, updatedAt: row.updatedAt.toISOString() })
