import type { ProviderKind } from '../../shared/contract/common.js'
import { AppError, unauthorized } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import type { DirectoryEntry, TeamModel } from '../directory/team.js'
import type { Exchange } from '../http/exchange.js'
import { readCredential } from './authenticate.js'
import { replyError } from './reply.js'

/** GET /gateway/models for a virtual key: what it may call, in the form that OpenAI's clients expect (spec 4, section 5). */
export function listModels(exchange: Exchange, deps: Deps): void {
  newestEntry(exchange, deps).then(
    entry => exchange.reply(200, ['content-type', 'application/json'], JSON.stringify(modelList(entry))),
    error => {
      if (!(error instanceof AppError))
        deps.log.error({ err: error, requestId: exchange.requestId }, 'model list failed')
      replyError(exchange, error)
    },
  )
}

async function newestEntry(exchange: Exchange, deps: Deps): Promise<DirectoryEntry> {
  const credential = readCredential(exchange.headers, deps.config.ownOrigin)
  const entry = await deps.directory.find(credential)
  if (entry === null) throw unauthorized()
  const seen = await deps.ledger.look(entry.team.teamId, entry.credential.id).catch(() => null)
  if (seen?.revoked) throw unauthorized()
  if (seen === null || seen.epoch <= entry.team.epoch) return entry
  const newest = await deps.directory.find(credential, seen.epoch)
  if (newest === null) throw unauthorized()
  return newest
}

function modelList({ credential, team }: DirectoryEntry) {
  const { allowedModels, allowedProviders } = credential
  const data = []
  for (const model of team.modelByName.values()) {
    const provider = team.connectionById.get(model.connectionId)?.provider
    if (provider === undefined) continue
    if (allowedModels !== null && !allowedModels.includes(model.publicName)) continue
    if (allowedProviders !== null && !allowedProviders.includes(provider)) continue
    data.push(gatewayModel(model, provider))
  }
  return { object: 'list', data }
}

/** The same object as the control plane's (spec 4, section 9: a model object is the same everywhere). */
const gatewayModel = (model: TeamModel, provider: ProviderKind) => ({
  id: model.publicName,
  modelId: model.id,
  publicName: model.publicName,
  object: 'model',
  created: Math.floor(model.createdAtMs / 1000),
  owned_by: provider,
  connectionId: model.connectionId,
  provider,
  upstreamModel: model.upstreamModel,
  pricing: model.pricing,
  maxOutputTokens: model.maxOutputTokens,
  contextWindow: model.contextWindow,
  createdAt: new Date(model.createdAtMs).toISOString(),
  updatedAt: new Date(model.updatedAtMs).toISOString(),
})
