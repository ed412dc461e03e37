import { randomUUID } from 'node:crypto'
import { createBudget } from '../../shared/contract/budgets.js'
import { createConnection } from '../../shared/contract/connections.js'
import { createFeedback } from '../../shared/contract/feedback.js'
import { shipCalls } from '../../shared/contract/internal.js'
import { createModel } from '../../shared/contract/models.js'
import { setDefaultPromptTool } from '../../shared/contract/prompt-tools.js'
import { commitPromptVersion, createPrompt } from '../../shared/contract/prompts.js'
import { setSecret } from '../../shared/contract/secrets.js'
import { createInvite } from '../../shared/contract/teams.js'
import { commitToolVersion, createTool } from '../../shared/contract/tools.js'
import { callRecord } from './call-records.js'
import type { ControlPlane } from './control-plane.js'
import type { SeededTeam } from './seed.js'

/** One resource of every kind, of a team that the caller is not in. */
export interface ForeignResources {
  team: SeededTeam
  inviteId: string
  connectionId: string
  modelId: string
  budgetId: string
  toolId: string
  promptId: string
  promptVersionId: string
  traceId: string
  feedbackId: string
  snapshot: Record<string, unknown>
}

/** How another team's resource is addressed by the endpoints of a path. */
export interface ForeignCase {
  matches: RegExp
  params(foreign: ForeignResources, mine: SeededTeam): Record<string, string>
  unknown(mine: SeededTeam): Record<string, string>
  /** A valid body, so that the resource is looked for. */
  bodies?: Partial<Record<string, object>>
  /** Methods that make what they name, if it is not there: another team's resource of that name is another one. */
  makes?: readonly string[]
}

const unknownId = () => ({ id: randomUUID() })
const teamBodies = { PATCH: { name: 'Taken', role: 'viewer' }, POST: { email: 'a@b', role: 'viewer' } }

export const foreignCases: ForeignCase[] = [
  {
    matches: /^\/teams\/:id\/members\/:userId$/,
    params: ({ team }, mine) => ({ id: mine.teamId, userId: team.viewer.userId }),
    unknown: mine => ({ id: mine.teamId, userId: randomUUID() }),
    bodies: teamBodies,
  },
  {
    matches: /^\/teams\/:id\/invites\/:inviteId$/,
    params: ({ inviteId }, mine) => ({ id: mine.teamId, inviteId }),
    unknown: mine => ({ id: mine.teamId, inviteId: randomUUID() }),
  },
  {
    matches: /^\/teams\/:id/,
    params: ({ team }) => ({ id: team.teamId }),
    unknown: unknownId,
    bodies: teamBodies,
  },
  { matches: /^\/api-keys\//, params: ({ team }) => ({ id: team.teamKeyId }), unknown: unknownId },
  {
    matches: /^\/gateway\/connections\//,
    params: ({ connectionId }) => ({ id: connectionId }),
    unknown: unknownId,
    bodies: { PATCH: { label: 'Taken' } },
  },
  {
    matches: /^\/gateway\/models\//,
    params: ({ modelId }) => ({ id: modelId }),
    unknown: unknownId,
    bodies: { PATCH: { maxOutputTokens: 1 } },
  },
  {
    matches: /^\/gateway\/keys\//,
    params: ({ team }) => ({ id: team.virtualKeyId }),
    unknown: unknownId,
    bodies: { PATCH: { name: 'Taken' } },
  },
  {
    matches: /^\/gateway\/budgets\//,
    params: ({ budgetId }) => ({ id: budgetId }),
    unknown: unknownId,
    bodies: { PATCH: { limitUsd: 1 } },
  },
  {
    matches: /^\/traces\/:id\/feedback\/:feedbackId$/,
    params: ({ traceId, feedbackId }) => ({ id: traceId, feedbackId }),
    unknown: () => ({ id: randomUUID(), feedbackId: randomUUID() }),
    bodies: { PATCH: { rating: -1 } },
  },
  {
    matches: /^\/traces\/:id\/feedback$/,
    params: ({ traceId }) => ({ id: traceId }),
    unknown: unknownId,
    bodies: { POST: { rating: 1 } },
  },
  {
    matches: /^\/prompts\/by-name\//,
    params: () => ({ name: 'Their prompt' }),
    unknown: () => ({ name: 'Nobody’s prompt' }),
  },
  {
    matches: /^\/prompts\/:id/,
    params: ({ promptId, toolId }) => ({ id: promptId, toolId, version_number: '1', alias: 'staging' }),
    unknown: () => ({ ...unknownId(), toolId: randomUUID(), version_number: '1', alias: 'staging' }),
    bodies: {
      PATCH: { name: 'Taken' },
      POST: { messages: [{ role: 'user', content: 'taken' }], versionNumber: 1 },
      PUT: { tool_alias: 'production' },
    },
  },
  {
    matches: /^\/prompt-versions\//,
    params: ({ promptVersionId }) => ({ versionId: promptVersionId }),
    unknown: () => ({ versionId: randomUUID() }),
  },
  {
    matches: /^\/tools\/:id/,
    params: ({ toolId }) => ({ id: toolId, version_number: '1', alias: 'staging' }),
    unknown: () => ({ ...unknownId(), version_number: '1', alias: 'staging' }),
    bodies: {
      PATCH: { name: 'taken' },
      POST: { versionNumber: 1, parametersSchema: {}, executor: { type: 'client' }, arguments: {} },
    },
  },
  {
    matches: /^\/secrets\//,
    params: () => ({ name: 'THEIRS' }),
    unknown: () => ({ name: 'NOBODYS' }),
    makes: ['PUT'],
  },
  { matches: /^\/sessions\//, params: () => ({ id: 'their-session' }), unknown: unknownId },
  { matches: /^\/traces\//, params: ({ traceId }) => ({ id: traceId }), unknown: unknownId },
]

export async function createForeignResources(cp: ControlPlane, team: SeededTeam): Promise<ForeignResources> {
  const as = team.owner.session
  const invite = await cp.call(createInvite, {
    as,
    params: { id: team.teamId },
    body: { email: 'invited@example.com', role: 'viewer' },
  })
  const connection = await cp.call(createConnection, {
    as,
    body: { provider: 'openai', label: 'Theirs', apiKey: 'sk-theirs' },
  })
  const model = await cp.call(createModel, {
    as,
    body: { publicName: 'theirs', connectionId: connection.body.id, upstreamModel: 'gpt-test' },
  })
  const budget = await cp.call(createBudget, { as, body: { period: 'month', limitUsd: 100 } })
  const traceId = await shipTrace(cp, team.teamId)
  const feedback = await cp.call(createFeedback, { as, params: { id: traceId }, body: { rating: 1 } })
  const tool = await cp.call(createTool, { as, body: { name: 'theirs' } })
  await cp.call(commitToolVersion, {
    as,
    params: { id: tool.body.id },
    body: { parametersSchema: { type: 'object' }, executor: { type: 'client' } },
  })
  await cp.call(setSecret, { as, params: { name: 'THEIRS' }, body: { value: 'theirs' } })
  const prompt = await cp.call(createPrompt, { as, body: { name: 'Their prompt' } })
  const promptVersion = await cp.call(commitPromptVersion, {
    as,
    params: { id: prompt.body.id },
    body: { messages: [{ role: 'user', content: 'theirs' }] },
  })
  await cp.call(setDefaultPromptTool, {
    as,
    params: { id: prompt.body.id, toolId: tool.body.id },
    body: { tool_alias: 'production' },
  })
  return {
    team,
    inviteId: invite.body.id,
    connectionId: connection.body.id,
    modelId: model.body.modelId,
    budgetId: budget.body.id,
    toolId: tool.body.id,
    promptId: prompt.body.id,
    promptVersionId: promptVersion.body.id,
    traceId,
    feedbackId: feedback.body.id,
    snapshot: await snapshotOf(cp, team.teamId),
  }
}

async function shipTrace(cp: ControlPlane, teamId: string): Promise<string> {
  const record = callRecord(teamId, { trace: { sessionId: 'their-session' } })
  const response = await cp.app.inject({
    method: 'POST',
    url: shipCalls.path,
    headers: { authorization: `Bearer ${cp.deps.config.internalToken}` },
    payload: `${JSON.stringify(record)}\n`,
  })
  if (response.statusCode !== 200) throw new Error(response.body)
  return record.span.trace.id
}

/** Every row of a team's tables, to see afterwards that nothing moved. */
export async function snapshotOf(cp: ControlPlane, teamId: string): Promise<Record<string, unknown>> {
  const { sql } = cp.deps
  const rows: Record<string, unknown> = {
    teams: [...(await sql`select * from teams where id = ${teamId}`)],
  }
  const tables = [
    'members',
    'invites',
    'api_keys',
    'connections',
    'models',
    'virtual_keys',
    'budgets',
    'tools',
    'tool_versions',
    'tool_aliases',
    'secrets',
    'prompts',
    'prompt_versions',
    'prompt_aliases',
    'prompt_tool_bindings',
    'traces',
    'trace_sessions',
    'feedback',
  ]
  for (const table of tables) {
    rows[table] = [...(await sql`select * from ${sql(table)} where team_id = ${teamId} order by 1, 2`)]
  }
  return rows
}
