import { createApiKey, revokeApiKey } from '../../../shared/contract/api-keys.js'
import type { AuditEventName } from '../../../shared/contract/audit.js'
import { acceptInvite } from '../../../shared/contract/auth.js'
import { createBudget, deleteBudget, updateBudget } from '../../../shared/contract/budgets.js'
import { createConnection, deleteConnection, updateConnection } from '../../../shared/contract/connections.js'
import { createModel, deleteModel, updateModel } from '../../../shared/contract/models.js'
import { updateTraceSettings } from '../../../shared/contract/settings.js'
import { createInvite, removeMember, updateMember, updateTeam } from '../../../shared/contract/teams.js'
import {
  createVirtualKey,
  revokeVirtualKey,
  updateVirtualKey,
} from '../../../shared/contract/virtual-keys.js'
import type { Answered, ControlPlane, Credential } from '../../support/control-plane.js'
import { person, type SeededTeam, team } from '../../support/seed.js'
import { promptActs, removedSecret, toolActs } from './prompt-tool-acts.js'

/** One audited act, ready to be done. */
export interface Act {
  /** Does it. The owner may; the viewer may not, unless `refused` says who. */
  run(as: Credential): Promise<Answered<unknown>>
  /** @param answer what the act answered. */
  metadata(answer: { id?: string; modelId?: string }): object
  /** Who does it, when it is not the owner. */
  by?: { userId: string; session: Credential }
  refused?(): Promise<Answered<unknown>>
  target?: string
  /** Which prompt and tool the row is about. */
  subject?(answer: { id?: string }): { promptId?: string | undefined; toolId?: string | undefined }
  /** Events that it writes as well, before the one it is here for. */
  before?: AuditEventName[]
  /** What no row of the trail may hold. */
  secrets?: string[]
}

export type Prepare = (cp: ControlPlane, mine: SeededTeam) => Promise<Act>

const PROVIDER_KEY = 'sk-provider-canary-0123456789'
const id = (params: string) => ({ id: params })

const connection = async (cp: ControlPlane, mine: SeededTeam) => {
  const body = { provider: 'openai' as const, label: 'Main', apiKey: PROVIDER_KEY }
  return (await cp.call(createConnection, { as: mine.owner.session, body })).body.id
}
const model = async (cp: ControlPlane, mine: SeededTeam) => {
  const body = { publicName: 'fast', connectionId: await connection(cp, mine), upstreamModel: 'gpt-test' }
  return (await cp.call(createModel, { as: mine.owner.session, body })).body.modelId
}
const budget = async (cp: ControlPlane, mine: SeededTeam) =>
  (await cp.call(createBudget, { as: mine.owner.session, body: { period: 'month', limitUsd: 5 } })).body.id

const members: Partial<Record<AuditEventName, Prepare>> = {
  api_key_generated: async (cp, { viewer }) => {
    const body = { name: 'CI', teamScoped: true }
    return {
      run: as => cp.call(createApiKey, { as, body }),
      refused: () => cp.call(createApiKey, { as: viewer.session, body }),
      metadata: answer => ({ apiKeyId: answer.id, name: 'CI', teamScoped: true }),
    }
  },
  api_key_revoked: async (cp, mine) => ({
    run: as => cp.call(revokeApiKey, { as, params: id(mine.teamKeyId) }),
    metadata: () => ({ apiKeyId: mine.teamKeyId, teamScoped: true }),
    secrets: [mine.teamKey.key ?? ''],
  }),
  member_invited: async (cp, mine) => {
    const body = { email: 'new@example.com', role: 'editor' as const }
    return {
      run: as => cp.call(createInvite, { as, params: id(mine.teamId), body }),
      metadata: answer => ({ inviteId: answer.id, ...body }),
    }
  },
  member_joined: async (cp, mine) => {
    const body = { email: 'joins@example.com', role: 'admin' as const }
    const invite = await cp.call(createInvite, { as: mine.owner.session, params: id(mine.teamId), body })
    const token = invite.body.url.split('/').at(-1) ?? ''
    const { viewer: outsider } = await team(cp)
    return {
      by: outsider,
      run: as => cp.call(acceptInvite, { as, params: { token }, body: {} }),
      metadata: () => ({ role: 'admin', inviteId: invite.body.id }),
      secrets: [token],
    }
  },
  member_role_updated: async (cp, mine) => {
    const params = { id: mine.teamId, userId: mine.editor.userId }
    return {
      run: as => cp.call(updateMember, { as, params, body: { role: 'admin' } }),
      metadata: () => ({ from: 'editor', to: 'admin' }),
      target: mine.editor.userId,
    }
  },
  member_removed: async (cp, mine) => {
    const leaver = await person(cp, mine.teamId, 'editor')
    return {
      run: as => cp.call(removeMember, { as, params: { id: mine.teamId, userId: leaver.userId } }),
      metadata: () => ({ role: 'editor', revokedApiKeyIds: [leaver.personalKeyId] }),
      target: leaver.userId,
      secrets: [leaver.personalKey.key ?? ''],
    }
  },
  team_renamed: async (cp, mine) => ({
    run: as => cp.call(updateTeam, { as, params: id(mine.teamId), body: { name: 'Renamed' } }),
    metadata: () => ({ from: mine.name, to: 'Renamed' }),
  }),
  trace_settings_updated: async cp => {
    const body = { capturePayloads: true, retentionDays: 90, redactKeys: ['redaction-canary'] }
    return {
      run: as => cp.call(updateTraceSettings, { as, body }),
      metadata: () => ({ changed: ['capturePayloads', 'redactKeys'] }),
      secrets: body.redactKeys,
    }
  },
}

const gateway: Partial<Record<AuditEventName, Prepare>> = {
  connection_created: async cp => {
    const body = { provider: 'openai' as const, label: 'Main', apiKey: PROVIDER_KEY }
    return {
      run: as => cp.call(createConnection, { as, body }),
      metadata: answer => ({ name: 'Main', connectionId: answer.id, provider: 'openai' }),
      secrets: [PROVIDER_KEY],
    }
  },
  connection_updated: async (cp, mine) => {
    const connectionId = await connection(cp, mine)
    const body = { label: 'Moved', apiKey: `${PROVIDER_KEY}-2`, config: {} }
    return {
      run: as => cp.call(updateConnection, { as, params: id(connectionId), body }),
      metadata: () => ({ name: 'Moved', connectionId, changed: ['label', 'apiKey'] }),
      secrets: [PROVIDER_KEY],
    }
  },
  connection_deleted: async (cp, mine) => {
    const connectionId = await connection(cp, mine)
    return {
      run: as => cp.call(deleteConnection, { as, params: id(connectionId) }),
      metadata: () => ({ name: 'Main', connectionId }),
    }
  },
  gateway_model_created: async (cp, mine) => {
    const body = { publicName: 'fast', connectionId: await connection(cp, mine), upstreamModel: 'gpt-test' }
    return {
      run: as => cp.call(createModel, { as, body }),
      metadata: answer => ({ name: 'fast', modelId: answer.modelId }),
    }
  },
  gateway_model_updated: async (cp, mine) => {
    const modelId = await model(cp, mine)
    const body = { publicName: 'faster', upstreamModel: 'gpt-test', maxOutputTokens: 100 }
    return {
      run: as => cp.call(updateModel, { as, params: id(modelId), body }),
      metadata: () => ({ name: 'faster', modelId, changed: ['publicName', 'maxOutputTokens'] }),
    }
  },
  gateway_model_deleted: async (cp, mine) => {
    const modelId = await model(cp, mine)
    return {
      run: as => cp.call(deleteModel, { as, params: id('fast') }),
      metadata: () => ({ name: 'fast', modelId }),
    }
  },
  virtual_key_created: async cp => ({
    run: as => cp.call(createVirtualKey, { as, body: { name: 'Bot' } }),
    metadata: answer => ({ name: 'Bot', virtualKeyId: answer.id }),
  }),
  virtual_key_updated: async (cp, mine) => ({
    run: as =>
      cp.call(updateVirtualKey, {
        as,
        params: id(mine.virtualKeyId),
        body: { name: 'Seeded', maxRpm: 5, allowedModels: ['fast'] },
      }),
    metadata: () => ({
      name: 'Seeded',
      virtualKeyId: mine.virtualKeyId,
      changed: ['allowedModels', 'maxRpm'],
    }),
    secrets: [mine.virtualKey.key ?? ''],
  }),
  virtual_key_revoked: async (cp, mine) => ({
    run: as => cp.call(revokeVirtualKey, { as, params: id(mine.virtualKeyId) }),
    metadata: () => ({ name: 'Seeded', virtualKeyId: mine.virtualKeyId }),
    secrets: [mine.virtualKey.key ?? ''],
  }),
  budget_created: async (cp, { virtualKeyId }) => {
    const body = { period: 'day' as const, limitUsd: 1.5, virtualKeyId }
    return {
      run: as => cp.call(createBudget, { as, body }),
      metadata: answer => ({ budgetId: answer.id, ...body }),
    }
  },
  budget_updated: async (cp, mine) => {
    const budgetId = await budget(cp, mine)
    const after = { period: 'month', limitUsd: 7 } as const
    return {
      run: as => cp.call(updateBudget, { as, params: id(budgetId), body: after }),
      metadata: () => ({ budgetId, virtualKeyId: null, ...after, changed: ['limitUsd'] }),
    }
  },
  budget_deleted: async (cp, mine) => {
    const budgetId = await budget(cp, mine)
    return {
      run: as => cp.call(deleteBudget, { as, params: id(budgetId) }),
      metadata: () => ({ budgetId, virtualKeyId: null, period: 'month', limitUsd: 5 }),
    }
  },
}

/** Every audited act, by its event; those of evaluation come with evaluation. */
export const acts: readonly [AuditEventName, Prepare][] = [
  ...(Object.entries({ ...members, ...gateway, ...promptActs, ...toolActs }) as [AuditEventName, Prepare][]),
  ['secret_set', removedSecret],
]
