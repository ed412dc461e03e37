import { between, pick, pickSkewed, seeded, sentence, uuid } from './random.js'

/** What the spans are about: teams, prompts, models and the rest of the vocabulary. The same in every run. */

export interface BenchTeam {
  id: string
  key: string
  /** Of all traces, 0 to 1. */
  share: number
  prompts: { id: string; name: string; versionIds: string[] }[]
  users: readonly string[]
  openSessions: string[]
  sessions: number
}

export const DAY_MS = 86_400_000
/** Traces are received over this long, up to now: the default window of the lists is the last 30 days of it. */
export const HISTORY_DAYS = 40

const TEAMS = 20
const PROMPTS = 10
const VERSIONS = 5

/** The largest has 37 % of everything, the smallest 1 %. */
export function makeTeams(): BenchTeam[] {
  const random = seeded(1)
  const weights = Array.from({ length: TEAMS }, (_, place) => 1 / (place + 1) ** 1.2)
  const total = weights.reduce((a, b) => a + b)
  return weights.map((weight, place) => ({
    id: uuid(random),
    key: '',
    share: weight / total,
    prompts: Array.from({ length: PROMPTS }, (_, prompt) => ({
      id: uuid(random),
      name: `prompt-${prompt}`,
      versionIds: Array.from({ length: VERSIONS }, () => uuid(random)),
    })),
    users: Array.from({ length: 5_000 }, (_, user) => `user-${place}-${user}`),
    openSessions: [],
    sessions: 0,
  }))
}

export const models = [
  ['gpt-5-mini', 'openai'],
  ['gpt-5', 'openai'],
  ['claude-sonnet-4-5', 'anthropic'],
  ['gemini-2.5-flash', 'google'],
  ['claude-haiku-4-5', 'anthropic'],
  ['gemini-2.5-pro', 'google'],
  ['o4-mini', 'openai'],
  ['llama-3.3-70b', 'openai_compatible'],
  ['mistral-large', 'openai_compatible'],
  ['claude-opus-4-1', 'anthropic'],
] as const
export const EMBEDDER = 'text-embedding-3-small'

export const traceNames = [
  'answer question',
  'checkout',
  'support reply',
  'summarise document',
  'triage ticket',
  'write email',
  'find product',
  'extract invoice',
  'nightly report',
  'quarterly forecast',
]
export const toolNames = [
  'lookup_order',
  'search_catalog',
  'refund',
  'send_email',
  'get_weather',
  'run_query',
]
export const environments = ['env:production', 'env:production', 'env:production', 'env:staging', 'env:dev']
export const features = Array.from({ length: 30 }, (_, feature) => `feature:${feature}`)
export const releases = Array.from({ length: 60 }, (_, release) => `release:1.${release}`)
export const tiers = ['free', 'free', 'free', 'pro', 'enterprise']
export const regions = ['eu-west', 'eu-north', 'us-east', 'us-west', 'asia']
export const errorCodes = Array.from({ length: 20 }, (_, code) => `E_TOOL_${code}`)
/** In one payload of 2,000, in one name of 2,000, and nowhere. */
export const RARE_IN_PAYLOAD = 'quartz-harpsichord'
export const RARE_IN_NAME = 'zanzibar migration'
export const NOWHERE = 'wyvernless'

const systemPrompts = Array.from({ length: 20 }, (_, prompt) => sentence(seeded(100 + prompt), 40))

export const systemPrompt = (random: () => number): string => pick(random, systemPrompts)

/** Some four traces of ten are in a session, of about eight traces. */
export function sessionOf(random: () => number, team: BenchTeam): string | null {
  if (random() > 0.4) return null
  if (team.openSessions.length < 20)
    team.openSessions.push(`session-${team.id.slice(0, 8)}-${team.sessions++}`)
  const at = between(random, 0, team.openSessions.length - 1)
  const session = team.openSessions[at] as string
  if (random() < 1 / 8) team.openSessions.splice(at, 1)
  return session
}

export function versionOf(random: () => number, team: BenchTeam): string | null {
  if (random() > 0.6) return null
  return pick(random, pickSkewed(random, team.prompts).versionIds)
}
