import type { AuditEventName } from '../../../shared/contract/audit.js'
import {
  removeAliasPromptTool,
  setAliasPromptTool,
  setDefaultPromptTool,
} from '../../../shared/contract/prompt-tools.js'
import {
  commitPromptVersion,
  createPrompt,
  deletePrompt,
  promotePromptAlias,
  updatePrompt,
} from '../../../shared/contract/prompts.js'
import { deleteSecret, setSecret } from '../../../shared/contract/secrets.js'
import {
  commitToolVersion,
  createTool,
  deleteTool,
  promoteToolAlias,
  syncTool,
  updateTool,
} from '../../../shared/contract/tools.js'
import type { ControlPlane } from '../../support/control-plane.js'
import type { SeededTeam } from '../../support/seed.js'
import type { Prepare } from './acts.js'

const SECRET = 'secret-canary-0123456789'
const MESSAGES = [{ role: 'system', content: 'prompt-canary {{ name }}' }]
const toolName = 'look_up'
const version = {
  parametersSchema: { type: 'object', description: 'schema-canary' },
  executor: { type: 'client' as const },
}

async function prompt(cp: ControlPlane, { owner: { session: as } }: SeededTeam, versions = 0) {
  const { id } = (await cp.call(createPrompt, { as, body: { name: 'Greeting' } })).body
  for (let n = 0; n < versions; n++)
    await cp.call(commitPromptVersion, { as, params: { id }, body: { messages: MESSAGES } })
  return id
}

async function tool(cp: ControlPlane, { owner: { session: as } }: SeededTeam, versions = 0) {
  const { id } = (await cp.call(createTool, { as, body: { name: toolName } })).body
  for (let n = 0; n < versions; n++) await cp.call(commitToolVersion, { as, params: { id }, body: version })
  return id
}

export const promptActs: Partial<Record<AuditEventName, Prepare>> = {
  prompt_created: async cp => ({
    run: as => cp.call(createPrompt, { as, body: { name: 'Greeting', description: 'd' } }),
    metadata: () => ({ name: 'Greeting' }),
    subject: answer => ({ promptId: answer.id }),
  }),
  prompt_renamed: async (cp, mine) => {
    const id = await prompt(cp, mine)
    return {
      run: as => cp.call(updatePrompt, { as, params: { id }, body: { name: 'Farewell' } }),
      metadata: () => ({ from: 'Greeting', to: 'Farewell' }),
      subject: () => ({ promptId: id }),
    }
  },
  prompt_deleted: async (cp, mine) => {
    const id = await prompt(cp, mine)
    return {
      run: as => cp.call(deletePrompt, { as, params: { id } }),
      metadata: () => ({ name: 'Greeting' }),
      subject: () => ({ promptId: id }),
    }
  },
  version_committed: async (cp, mine) => {
    const id = await prompt(cp, mine)
    return {
      run: as => cp.call(commitPromptVersion, { as, params: { id }, body: { messages: MESSAGES } }),
      metadata: answer => ({ versionNumber: 1, versionId: answer.id }),
      subject: () => ({ promptId: id }),
      secrets: ['prompt-canary'],
    }
  },
  prompt_alias_promoted: async (cp, mine) => {
    const id = await prompt(cp, mine, 2)
    const params = { id, alias: 'production' }
    return {
      run: as => cp.call(promotePromptAlias, { as, params, body: { versionNumber: 2 } }),
      metadata: () => ({ alias: 'production', versionNumber: 2, fromVersionNumber: 1 }),
      subject: () => ({ promptId: id }),
    }
  },
  prompt_tool_route_set: async (cp, mine) => {
    const [id, toolId] = [await prompt(cp, mine, 1), await tool(cp, mine, 1)]
    const params = { id, toolId, alias: 'production' }
    const first = { tool_alias: 'staging' }
    await cp.call(setAliasPromptTool, { as: mine.owner.session, params, body: first })
    return {
      run: as => cp.call(setAliasPromptTool, { as, params, body: { tool_alias: 'production' } }),
      metadata: () => ({
        toolId,
        toolName,
        promptAlias: 'production',
        toToolAlias: 'production',
        fromToolAlias: 'staging',
        toPinnedVersionNumber: null,
        off: false,
      }),
      subject: () => ({ promptId: id, toolId }),
    }
  },
  prompt_tool_route_removed: async (cp, mine) => {
    const [id, toolId] = [await prompt(cp, mine, 1), await tool(cp, mine, 1)]
    const params = { id, toolId, alias: 'staging' }
    const body = { tool_alias: 'production' }
    await cp.call(setDefaultPromptTool, { as: mine.owner.session, params: { id, toolId }, body })
    await cp.call(setAliasPromptTool, { as: mine.owner.session, params, body })
    return {
      run: as => cp.call(removeAliasPromptTool, { as, params }),
      metadata: () => ({ toolId, toolName, promptAlias: 'staging', fromToolAlias: 'production' }),
      subject: () => ({ promptId: id, toolId }),
    }
  },
}

export const toolActs: Partial<Record<AuditEventName, Prepare>> = {
  tool_created: async cp => ({
    run: as => cp.call(createTool, { as, body: { name: toolName } }),
    metadata: answer => ({ toolId: answer.id, name: toolName }),
    subject: answer => ({ toolId: answer.id }),
  }),
  tool_renamed: async (cp, mine) => {
    const toolId = await tool(cp, mine)
    return {
      run: as => cp.call(updateTool, { as, params: { id: toolId }, body: { name: 'search' } }),
      metadata: () => ({ toolId, from: toolName, to: 'search' }),
      subject: () => ({ toolId }),
    }
  },
  tool_deleted: async (cp, mine) => {
    const toolId = await tool(cp, mine, 1)
    return {
      run: as => cp.call(deleteTool, { as, params: { id: toolId } }),
      metadata: () => ({ toolId, name: toolName }),
      subject: () => ({ toolId }),
    }
  },
  tool_version_committed: async (cp, mine) => {
    const toolId = await tool(cp, mine)
    const body = { ...version, source: 'dashboard' as const }
    return {
      run: as => cp.call(commitToolVersion, { as, params: { id: toolId }, body }),
      metadata: () => ({ via: 'dashboard', source: 'dashboard', toolId, toolName, versionNumber: 1 }),
      subject: () => ({ toolId }),
      secrets: ['schema-canary'],
    }
  },
  tool_version_superseded: async (cp, mine) => {
    const toolId = await tool(cp, mine, 1)
    const body = { ...version, description: 'Looks things up.' }
    return {
      run: as => cp.call(syncTool, { as, params: { id: toolId }, body }),
      before: ['tool_version_committed'],
      metadata: () => ({
        toolId,
        toolName,
        alias: 'production',
        supersededVersionNumber: 1,
        newVersionNumber: 2,
        supersededSource: 'api',
      }),
      subject: () => ({ toolId }),
    }
  },
  tool_alias_promoted: async (cp, mine) => {
    const toolId = await tool(cp, mine, 2)
    const params = { id: toolId, alias: 'beta' }
    return {
      run: as => cp.call(promoteToolAlias, { as, params, body: { versionNumber: 2 } }),
      metadata: () => ({ toolId, toolName, alias: 'beta', versionNumber: 2, fromVersionNumber: null }),
      subject: () => ({ toolId }),
    }
  },
  secret_set: async cp => ({
    run: as => cp.call(setSecret, { as, params: { name: 'API_TOKEN' }, body: { value: SECRET } }),
    metadata: () => ({ name: 'API_TOKEN', removed: false }),
    secrets: [SECRET],
  }),
}

/** The other way to write `secret_set`. */
export const removedSecret: Prepare = async (cp, mine) => {
  const params = { name: 'API_TOKEN' }
  await cp.call(setSecret, { as: mine.owner.session, params, body: { value: SECRET } })
  return {
    run: as => cp.call(deleteSecret, { as, params }),
    metadata: () => ({ name: 'API_TOKEN', removed: true }),
    secrets: [SECRET],
  }
}
