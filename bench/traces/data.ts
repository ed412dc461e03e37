import { createHash } from 'node:crypto'
import type { SpanWrite } from '../../control-plane/traces/span-write.js'
import type { ErrorType, SpanKind } from '../../shared/contract/traces.js'
import {
  between,
  latencyMs,
  pick,
  pickSkewed,
  type Random,
  seeded,
  sentence,
  spanId,
  uuid,
} from './random.js'
import {
  type BenchTeam,
  EMBEDDER,
  environments,
  errorCodes,
  features,
  models,
  RARE_IN_NAME,
  RARE_IN_PAYLOAD,
  regions,
  releases,
  sessionOf,
  systemPrompt,
  tiers,
  toolNames,
  traceNames,
  versionOf,
} from './world.js'

export interface BenchTrace {
  team: BenchTeam
  spans: SpanWrite[]
}

/** Traces without end, the same for the same seed: one to twenty spans each, five on average, of skewed teams. */
export function traceSource(teams: readonly BenchTeam[], seed: number): (receivedAtMs: number) => BenchTrace {
  const random = seeded(seed)
  return receivedAtMs => {
    const team = teamOf(random(), teams)
    return { team, spans: makeSpans(random, team, receivedAtMs - between(random, 1_000, 30_000)) }
  }
}

function teamOf(place: number, teams: readonly BenchTeam[]): BenchTeam {
  let left = place
  for (const team of teams) {
    left -= team.share
    if (left < 0) return team
  }
  return teams.at(-1) as BenchTeam
}

/** A root, and under it whatever an agent does. Seven traces of ten have their payload captured. */
function makeSpans(random: Random, team: BenchTeam, startMs: number): SpanWrite[] {
  const claim = claimOf(random, team)
  const captured = random() < 0.7
  const steps = random() < 0.05 ? between(random, 10, 19) : between(random, 1, 8)
  const base = { teamId: team.id, trace: claim, parentSpanId: null, captured }
  if (steps === 1) return [llmSpan(random, team, base, startMs)]
  const children: SpanWrite[] = []
  const rootId = spanId(random)
  let atMs = startMs + 2
  for (let step = 1; step < steps; step++) {
    const child = makeChild(random, team, { ...base, parentSpanId: rootId }, atMs)
    atMs = (child.endTimeMs ?? atMs) + 1
    children.push(child)
  }
  const failed = children.some(child => child.status === 'error') && random() < 0.5
  const name = random() < 1 / 2_000 ? RARE_IN_NAME : (claim.name ?? 'agent')
  const root = span(random, base, { kind: 'agent', name, startMs, endMs: atMs + 1, failed })
  return [{ ...root, spanId: rootId }, ...children]
}

function claimOf(random: Random, team: BenchTeam): SpanWrite['trace'] {
  const named = random() < 0.8
  return {
    id: uuid(random),
    name: named ? pickSkewed(random, traceNames) : null,
    nameSource: named ? 'explicit' : null,
    sessionId: sessionOf(random, team),
    tags: [pick(random, environments), pickSkewed(random, features), pickSkewed(random, releases)].sort(),
    metadata: {
      tier: pick(random, tiers),
      region: pickSkewed(random, regions),
      userId: pickSkewed(random, team.users),
    },
  }
}

type Base = Pick<SpanWrite, 'teamId' | 'trace' | 'parentSpanId'> & { captured: boolean }

function makeChild(random: Random, team: BenchTeam, base: Base, startMs: number): SpanWrite {
  const kind = random()
  if (kind < 0.5) return llmSpan(random, team, base, startMs)
  if (kind < 0.75) return toolSpan(random, base, startMs)
  if (kind < 0.85) return embeddingSpan(random, base, startMs)
  const endMs = startMs + latencyMs(random, 40)
  const retrieval = span(random, base, {
    kind: kind < 0.95 ? 'retrieval' : 'chain',
    name: 'find passages',
    startMs,
    endMs,
  })
  return base.captured
    ? {
        ...retrieval,
        input: sentence(random, 8),
        output: [1, 2].map(() => ({ score: random(), content: sentence(random, 30) })),
      }
    : retrieval
}

function llmSpan(random: Random, team: BenchTeam, base: Base, startMs: number): SpanWrite {
  const [model, provider] = pickSkewed(random, models)
  const promptTokens = between(random, 100, 4_000)
  const completionTokens = between(random, 10, 800)
  const endMs = startMs + latencyMs(random, 900)
  const made = span(random, base, {
    kind: 'llm',
    name: `chat ${model}`,
    startMs,
    endMs,
    errors: ['provider_error'],
  })
  return {
    ...made,
    model,
    provider,
    promptTokens,
    completionTokens,
    totalTokens: promptTokens + completionTokens,
    costNano: random() < 0.95 ? promptTokens * 250 + completionTokens * 2_000 : null,
    promptVersionId: versionOf(random, team),
    ...(base.captured && llmPayload(random)),
  }
}

function llmPayload(random: Random): Pick<SpanWrite, 'input' | 'output' | 'variables'> {
  const rare = random() < 1 / 2_000 ? ` ${RARE_IN_PAYLOAD}` : ''
  const messages = [
    { role: 'system', content: systemPrompt(random) },
    { role: 'user', content: sentence(random, between(random, 10, 60)) + rare },
  ]
  const output = { role: 'assistant', content: sentence(random, between(random, 20, 90)) }
  return { input: { messages }, output, variables: { question: sentence(random, 4) } }
}

function toolSpan(random: Random, base: Base, startMs: number): SpanWrite {
  const endMs = startMs + latencyMs(random, 120)
  const errors: ErrorType[] = ['transport', 'http_status', 'tool_declared', 'schema_mismatch']
  const made = span(random, base, {
    kind: 'tool',
    name: pickSkewed(random, toolNames),
    startMs,
    endMs,
    errors,
  })
  if (!base.captured) return made
  return {
    ...made,
    input: { orderId: between(random, 1, 1e6) },
    output: { status: pick(random, regions), note: sentence(random, 10) },
  }
}

function embeddingSpan(random: Random, base: Base, startMs: number): SpanWrite {
  const promptTokens = between(random, 5, 300)
  const made = span(random, base, {
    kind: 'embedding',
    name: 'embed',
    startMs,
    endMs: startMs + latencyMs(random, 60),
  })
  return {
    ...made,
    model: EMBEDDER,
    provider: 'openai',
    promptTokens,
    totalTokens: promptTokens,
    costNano: promptTokens * 20,
  }
}

interface Shape {
  kind: SpanKind
  name: string
  startMs: number
  endMs: number
  failed?: boolean
  errors?: ErrorType[]
}

function span(
  random: Random,
  base: Base,
  { kind, name, startMs, endMs, errors = [], failed }: Shape,
): SpanWrite {
  const { captured: _, ...place } = base
  const breaks = errors.length > 0 && random() < 0.03
  const type = breaks ? pick(random, errors) : null
  const warns = random() < 0.005
  return {
    ...place,
    spanId: spanId(random),
    name,
    kind,
    status: breaks || failed === true ? 'error' : random() < 0.9 ? 'ok' : 'unset',
    startTimeMs: startMs,
    endTimeMs: endMs,
    model: null,
    provider: null,
    promptTokens: null,
    completionTokens: null,
    totalTokens: null,
    costNano: null,
    promptVersionId: null,
    errorType: type,
    errorCode: type === 'tool_declared' ? pickSkewed(random, errorCodes) : null,
    hasWarning: warns,
    attributes: {
      'service.name': pickSkewed(random, ['web', 'worker', 'batch', 'edge']),
      'host.name': `node-${between(random, 1, 40)}`,
      requestId: uuid(random),
      retries: between(random, 0, 2),
      ...(warns && { warnings: ['slow upstream'] }),
    },
    input: null,
    output: null,
    variables: null,
  }
}

/** A stable number from 0 to 1 for a trace: who gets feedback must not depend on how traces are made. */
export const lot = (traceId: string): number =>
  createHash('md5').update(traceId).digest().readUInt32BE(0) / 4_294_967_296
