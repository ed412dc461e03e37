import type { FastifyInstance } from 'fastify'
import {
  listPromptTools,
  removeAliasPromptTool,
  removeAliasPromptTools,
  removeDefaultPromptTool,
  setAliasPromptTool,
  setDefaultPromptTool,
} from '../../shared/contract/prompt-tools.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { requirePrompt } from '../prompts/missing.js'
import { removeAliasBindings, removeBinding, setBinding } from './change-binding.js'
import { listBindings, shownBinding } from './list-bindings.js'

/** Which tools a prompt offers, by alias (spec 1, prompt tool bindings; spec 4, section 9). */
export function registerPromptTools(app: FastifyInstance, deps: Deps): void {
  route(app, deps, listPromptTools, async ({ params, principal: { teamId } }) => {
    const prompt = await requirePrompt(deps.sql, teamId, params.id)
    return { data: await listBindings(deps.sql, teamId, prompt.id) }
  })

  route(app, deps, setDefaultPromptTool, async ({ params, body, principal }) => {
    const name = { promptId: params.id, promptAlias: null, toolId: params.toolId }
    const row = await setBinding(deps, principal, name, targetOf(body))
    return shownBinding(row, row.resolvedVersionNumber)
  })

  route(app, deps, removeDefaultPromptTool, async ({ params, principal }) => {
    await removeBinding(deps, principal, { promptId: params.id, promptAlias: null, toolId: params.toolId })
    return undefined
  })

  route(app, deps, setAliasPromptTool, async ({ params, body, principal }) => {
    const name = { promptId: params.id, promptAlias: params.alias, toolId: params.toolId }
    const row = await setBinding(deps, principal, name, targetOf(body))
    return shownBinding(row, row.resolvedVersionNumber)
  })

  route(app, deps, removeAliasPromptTool, async ({ params, principal }) => {
    const { id: promptId, alias: promptAlias, toolId } = params
    await removeBinding(deps, principal, { promptId, promptAlias, toolId })
    return undefined
  })

  route(app, deps, removeAliasPromptTools, async ({ params, principal }) => {
    await removeAliasBindings(deps, principal, { promptId: params.id, promptAlias: params.alias })
    return undefined
  })
}

interface RouteBody {
  tool_alias?: string | null | undefined
  pinned_version_number?: number | null | undefined
}

/** Neither of the two: `off: true`, as the contract has made sure. */
const targetOf = (body: RouteBody) => ({
  toolAlias: body.tool_alias ?? null,
  pinnedVersionNumber: body.pinned_version_number ?? null,
})
