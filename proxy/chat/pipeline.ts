import { AppError, unauthorized, unavailable } from '../../shared/errors/app-error.js'
import { type CachedAnswer, cacheKey } from '../cache/response-cache.js'
import type { Deps } from '../deps.js'
import type { DirectoryEntry } from '../directory/team.js'
import type { Exchange } from '../http/exchange.js'
import { uuidV7 } from '../uuid-v7.js'
import { type Admission, admit, type LedgerState } from './admit.js'
import { type Credential, checkRole, readCredential } from './authenticate.js'
import { replyFromCache } from './cached-reply.js'
import { ProviderCall } from './call.js'
import { asDepthError, BODY_LIMIT_BYTES, type ChatCall, parseCall, type StoredCall } from './parse.js'
import type { Recorded } from './record.js'
import { resolveReferences } from './references.js'
import { replyError } from './reply.js'
import { resolveTarget, type ScopedTarget } from './resolve.js'
import { checkModel, checkScope } from './scope.js'
import { readTraceContext, type TraceContext } from './trace-context.js'

/**
 * POST /gateway/chat/completions (spec 3). The steps of one call, in the order of its checks; each takes the type that
 * the one before returns, so that no other order compiles. Everything up to the provider is `judge`; from there on
 * `ProviderCall` owns the call and settles it at whichever end comes first.
 */
export function completeChat(exchange: Exchange, deps: Deps): void {
  const startedAtMs = deps.now()
  let credential: Credential
  try {
    credential = readCredential(exchange.headers, deps.config.ownOrigin)
  } catch (error) {
    refuse(exchange, error, startedAtMs, deps)
    return
  }
  exchange.readBody(BODY_LIMIT_BYTES, result => {
    if (result.kind === 'tooLarge') {
      const error = new AppError('PAYLOAD_TOO_LARGE', 'The body is larger than 10 MB.')
      refuse(exchange, error, startedAtMs, deps)
      return
    }
    judge(exchange, credential, result.bytes, startedAtMs, deps).catch(error =>
      refuse(exchange, error, startedAtMs, deps),
    )
  })
}

/** A configuration that changes faster than it can be loaded this often is not waited for. */
const MAX_RELOADS = 5

async function judge(
  exchange: Exchange,
  credential: Credential,
  bytes: Buffer,
  startedAtMs: number,
  deps: Deps,
) {
  let caller = await authenticate(credential, deps)
  if (deps.spool.full)
    throw unavailable('The disk for finished calls is full; no call is taken until it has room.')
  let parsed: ChatCall | StoredCall | null = null
  let ledger: LedgerState = 'trusted'
  for (let reload = 0; reload <= MAX_RELOADS; reload++) {
    let target: ScopedTarget
    try {
      checkRole(caller)
      parsed ??= parseCall(bytes)
      const call = parsed.stored === null ? parsed : await resolveStored(parsed, caller, deps)
      target = checkScope(resolveTarget(call, caller))
    } catch (refusal) {
      // A refusal must hold against the newest configuration, not against the copy in memory.
      const announcedEpoch = await newerEpoch(caller, deps)
      if (announcedEpoch === null) throw refusal
      caller = await authenticate(credential, deps, announcedEpoch)
      continue
    }
    const cache = hasCache(target) ? await lookUp(target, deps) : null
    const admission = await admit(target, exchange.requestId, cache?.answer != null, ledger, deps)
    if ('stale' in admission) {
      ledger = admission.ledger
      caller = await authenticate(credential, deps, admission.announcedEpoch)
      continue
    }
    const context = readTraceContext(exchange.headers, target.call)
    if (context.traceId !== null) await keepOwnTrace(context, caller.team.teamId, deps)
    return proceed(exchange, recorded(exchange, admission, context, startedAtMs), cache, deps)
  }
  throw unavailable('The configuration of this team is changing; try again.')
}

function resolveStored(call: StoredCall, caller: DirectoryEntry, deps: Deps): Promise<ChatCall> {
  if (call.model !== null) checkModel(call.model, caller)
  return resolveReferences(call, caller.team, deps)
}

/** After every check has passed: the cached answer, or the provider's. */
function proceed(exchange: Exchange, call: Recorded, cache: Cached | null, deps: Deps): void {
  if (cache !== null && cache.answer !== null) {
    replyFromCache(exchange, call, cache.answer, deps)
    return
  }
  const keep = cache && ((answer: CachedAnswer) => void deps.cache.set(cache.key, answer, cache.ttlSeconds))
  new ProviderCall(exchange, call, keep, deps).start()
}

/** @throws AppError UNAUTHORIZED for an unknown credential. */
async function authenticate(
  credential: Credential,
  deps: Deps,
  announcedEpoch?: number,
): Promise<DirectoryEntry> {
  const found = deps.directory.find(credential, announcedEpoch)
  // Awaiting a value that is there would cost a turn of the microtask queue on every call.
  const entry = found instanceof Promise ? await found : found
  if (entry === null) throw unauthorized()
  return entry
}

/** The epoch to load when the ledger knows a newer one than the entry's; null when the entry is the newest known. */
async function newerEpoch({ credential, team }: DirectoryEntry, deps: Deps): Promise<number | null> {
  try {
    const { epoch, revoked } = await deps.ledger.look(team.teamId, credential.id)
    if (revoked) throw unauthorized()
    return epoch > team.epoch ? epoch : null
  } catch (error) {
    if (error instanceof AppError) throw error
    return null
  }
}

interface Cached {
  key: string
  ttlSeconds: number
  answer: CachedAnswer | null
}

/** Only virtual keys have a response cache. */
const hasCache = ({ caller }: ScopedTarget) => (caller.credential.cacheTtlSeconds ?? 0) > 0

async function lookUp({ call, caller, model, connection }: ScopedTarget, deps: Deps): Promise<Cached> {
  const { credential, team } = caller
  const { upstreamModel } = model
  const scope = {
    teamId: team.teamId,
    virtualKeyId: credential.id,
    connectionId: connection.id,
    upstreamModel,
  }
  const key = keyOf(scope, call)
  const answer = await deps.cache.get(key)
  if (answer === null) deps.metrics.cacheMisses.inc()
  else deps.metrics.cacheHits.inc()
  return { key, ttlSeconds: credential.cacheTtlSeconds ?? 0, answer }
}

/** @throws AppError VALIDATION_ERROR for a request that is nested too deeply. */
function keyOf(scope: Parameters<typeof cacheKey>[0], call: ChatCall): string {
  try {
    return cacheKey(scope, call.request)
  } catch (error) {
    throw asDepthError(error)
  }
}

function recorded(
  exchange: Exchange,
  admission: Admission,
  context: TraceContext,
  startedAtMs: number,
): Recorded {
  return {
    admission,
    context,
    traceId: context.traceId ?? uuidV7(),
    requestId: exchange.requestId,
    startedAtMs,
    captures: context.capturePayloads ?? admission.target.caller.team.capturePayloads,
  }
}

/** Another team's trace id is dropped and listed, and a new trace is made (spec 4, section 9 Gateway). */
async function keepOwnTrace(context: TraceContext, teamId: string, deps: Deps): Promise<void> {
  try {
    if ((await deps.directory.traceOwner(teamId, context.traceId as string)) !== 'foreign') return
  } catch {
    // The control plane is away. Ingestion looks again and never writes into another team's trace.
    return
  }
  context.traceId = null
  context.parentSpanId = null
  context.ignored.push(context.traceIdSource)
}

function refuse(exchange: Exchange, error: unknown, startedAtMs: number, deps: Deps): void {
  deps.metrics.callSeconds.refused.observe((deps.now() - startedAtMs) / 1000)
  if (!(error instanceof AppError)) {
    deps.log.error({ err: error, requestId: exchange.requestId }, 'completion failed')
  } else if (error.status >= 500) {
    // Not louder: while the ledger or the control plane is away this is every call, and their clients have said so once.
    deps.log.debug({ err: error, requestId: exchange.requestId }, error.message)
  }
  replyError(exchange, error)
}
