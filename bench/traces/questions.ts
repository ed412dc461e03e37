import { Client } from 'undici'
import { percentile } from '../processes.js'
import { seeded } from './random.js'
import {
  type BenchTeam,
  EMBEDDER,
  errorCodes,
  features,
  models,
  NOWHERE,
  RARE_IN_NAME,
  RARE_IN_PAYLOAD,
  toolNames,
} from './world.js'

/** What people ask of the store. Each request takes the next of its paths, so that no answer is asked for twice in a row. */
export interface Question {
  name: string
  paths(team: BenchTeam, known: Known): string[]
  /** What is counted is remembered by the day; so it is asked with values that nobody has asked for as well. */
  isCounted?: boolean
}

/** Ids that the store gave out. */
export interface Known {
  traceIds: string[]
  sessionIds: string[]
}

const list = (name: string, ...queries: string[]): Question => ({
  name,
  paths: () => queries.map(query => `/traces?${query}`),
})
const counted = (question: Question): Question => ({ ...question, isCounted: true })
const get = (name: string, ...paths: string[]): Question => ({ name, paths: () => paths })
const some = <T>(items: readonly T[]) => items.slice(0, 5)
const named = (key: string, values: readonly string[]) =>
  some(values).map(value => `${key}=${encodeURIComponent(value)}`)

const lists: Question[] = [
  list('list, first page', ''),
  list('list, page 2 and 3', 'page=2', 'page=3'),
  list('list, page 50', 'page=50'),
  list('list, 100 rows', 'limit=100'),
  list('list, one day', `from=${daysAgo(9)}&to=${daysAgo(8)}`),
  list('status=error', 'status=error'),
  list('status=ok', 'status=ok'),
  list(
    'model, common',
    ...named(
      'model',
      models.slice(0, 3).map(([model]) => model),
    ),
  ),
  list('model, rare', ...named('model', [models.at(-1)?.[0] ?? '', EMBEDDER])),
  counted({ name: 'session_id', paths: (_, known) => named('/traces?session_id', known.sessionIds) }),
  {
    name: 'prompt_version_id',
    paths: team => named('/traces?prompt_version_id', team.prompts[0]?.versionIds ?? []),
  },
  {
    name: 'prompt_id',
    paths: team =>
      named(
        '/traces?prompt_id',
        team.prompts.map(prompt => prompt.id),
      ),
  },
  counted(list('min_latency_ms', 'min_latency_ms=5000', 'min_latency_ms=9000')),
  counted(list('min_cost_usd', 'min_cost_usd=0.01', 'min_cost_usd=0.02')),
  counted(list('min_tokens', 'min_tokens=20000', 'min_tokens=30000')),
  list('error_type', ...named('error_type', ['transport', 'http_status', 'tool_declared', 'provider_error'])),
  list('error_code', ...named('error_code', errorCodes)),
  list('has_warning=true', 'has_warning=true'),
  list('has_warning=false', 'has_warning=false'),
  list('tags, one', ...named('tags', features)),
  counted(list('tags, two', 'tags=env%3Astaging&tags=feature%3A3', 'tags=env%3Adev&tags=release%3A1.2')),
  counted(list('metadata, common', 'metadata%5Btier%5D=pro', 'metadata%5Bregion%5D=us-west')),
  counted({
    name: 'metadata, rare',
    paths: team => named('/traces?metadata%5BuserId%5D', team.users.slice(3_000)),
  }),
  counted(list('min_rating', 'min_rating=4', 'min_rating=5')),
  counted(list('max_rating', 'max_rating=0', 'max_rating=-1')),
]

const searches: Question[] = [
  list('q on names, common', 'q_in=name&q=checkout', 'q_in=name&q=ticket'),
  list('q on names, span', ...named('q_in=name&q', toolNames)),
  list('q on names, rare', `q_in=name&q=${encodeURIComponent(RARE_IN_NAME)}`),
  list('q on payloads, common', 'q_in=input&q=customer', 'q_in=output&q=refund'),
  list('q on payloads, rare', `q_in=input&q=${RARE_IN_PAYLOAD}`),
  list('q anywhere, common', 'q=please', 'q=shipping'),
  list('q anywhere, rare', `q=${RARE_IN_PAYLOAD}`, `q=${encodeURIComponent(RARE_IN_NAME)}`),
  list('q anywhere, nowhere', `q=${NOWHERE}`),
  list(
    'model + status + tag + latency',
    'model=gpt-5&status=error&tags=env%3Aproduction&min_latency_ms=1000',
    'model=claude-sonnet-4-5&status=error&tags=env%3Aproduction&min_latency_ms=2000',
  ),
  list('model + q', `model=gpt-5&q=${RARE_IN_PAYLOAD}`),
]

const aggregates: Question[] = [
  get('facets', '/traces/facets'),
  get('analytics by day', '/traces/analytics'),
  get('analytics by model', '/traces/analytics?group_by=model'),
  get('analytics by prompt version', '/traces/analytics?group_by=prompt_version'),
  get('analytics by session', '/traces/analytics?group_by=session'),
  get('analytics by day, llm', '/traces/analytics?kind=llm', '/traces/analytics?kind=tool'),
  get('analytics by day, one model', '/traces/analytics?model=gpt-5', '/traces/analytics?model=o4-mini'),
  get('sessions', '/sessions', '/sessions?page=2'),
  {
    name: 'sessions, q',
    paths: (_, known) =>
      named(
        '/sessions?q',
        known.sessionIds.map(id => id.slice(-6)),
      ),
  },
  { name: 'session', paths: (_, known) => some(known.sessionIds).map(id => `/sessions/${id}`) },
  { name: 'trace', paths: (_, known) => known.traceIds.map(id => `/traces/${id}`) },
  get('feedback feed', '/traces/feedback', '/traces/feedback?page=2'),
  get('feedback feed, down', '/traces/feedback?rating=down'),
  counted(get('feedback feed by model', '/traces/feedback?model=gpt-5', '/traces/feedback?model=o4-mini')),
  counted(get('feedback feed, q', `/traces/feedback?q=${RARE_IN_PAYLOAD}`, '/traces/feedback?q=refund')),
  get('feedback summary by model', '/traces/feedback/summary?group_by=model'),
  get('feedback summary by version', '/traces/feedback/summary'),
]

export const questions: readonly Question[] = [...lists, ...searches.map(counted), ...aggregates]

function daysAgo(days: number): string {
  return new Date(Date.now() - days * 86_400_000).toISOString()
}

export interface Answer {
  p50Ms: number
  p95Ms: number
  /** The same with nothing remembered. null: nothing ever is. */
  cold: { p50Ms: number; p95Ms: number } | null
  requests: number
  /** Of a list: how many there are in all. */
  total: number | null
  /** What went wrong instead. */
  refusal: string | null
}

let asked = 0

/** The same question as the server has never heard it: blanks around a text search mean nothing, but it is another text. */
function neverAsked(path: string): string {
  asked += 1
  const blanks = [...asked.toString(2)].map(digit => (digit === '1' ? '%09' : '%20')).join('')
  return /[?&]q=/.test(path) ? path.replace(/([?&]q=[^&]*)/, `$1${blanks}`) : `${path}&q=${blanks}`
}

/** One question after the other, one request at a time, until there are enough or it has taken too long. */
export class Asker {
  readonly #client: Client
  readonly #known = new Map<BenchTeam, Known>()

  constructor(origin: string) {
    this.#client = new Client(origin, { pipelining: 1, bodyTimeout: 30_000, headersTimeout: 30_000 })
  }

  /** A third of the requests warm up: after some the server keeps its plan. */
  async ask(question: Question, team: BenchTeam, requests: number, mostMs = 8_000): Promise<Answer> {
    const paths = question.paths(team, await this.known(team))
    const cold = question.isCounted
      ? await this.#time(team, turn => neverAsked(paths[turn % paths.length] ?? ''), requests, mostMs)
      : null
    const { times, total, refusal } = await this.#time(
      team,
      turn => paths[turn % paths.length] ?? '',
      requests,
      mostMs,
    )
    return {
      ...percentiles(times),
      cold: cold && percentiles(cold.times),
      requests: times.length,
      total,
      refusal: cold?.refusal ?? refusal,
    }
  }

  async #time(team: BenchTeam, pathOf: (turn: number) => string, requests: number, mostMs: number) {
    const times: number[] = []
    const warmUp = Math.ceil(requests / 3)
    const until = performance.now() + mostMs
    let total: number | null = null
    for (let turn = 0; turn < warmUp + requests; turn++) {
      if (performance.now() > until && times.length >= 5) break
      const startedAt = performance.now()
      const { status, body } = await this.get(pathOf(turn), team)
      if (turn >= warmUp || performance.now() > until) times.push(performance.now() - startedAt)
      if (status !== 200) {
        return { times: [], total, refusal: `${status} ${body.error?.message ?? ''}`.trim() }
      }
      total = body.total ?? total
    }
    return { times, total, refusal: null }
  }

  async get(path: string, team: BenchTeam): Promise<{ status: number; body: AnyAnswer }> {
    const response = await this.#client.request({
      method: 'GET',
      path: `/api/v1${path}`,
      headers: { authorization: `Bearer ${team.key}` },
    })
    const text = await response.body.text()
    return { status: response.statusCode, body: JSON.parse(text) as AnyAnswer }
  }

  async known(team: BenchTeam): Promise<Known> {
    const known = this.#known.get(team)
    if (known !== undefined) return known
    const { body } = await this.get('/traces?limit=100', team)
    const random = seeded(5)
    const rows = [...(body.data ?? [])].sort(() => random() - 0.5)
    const found = {
      traceIds: rows.slice(0, 20).map(row => row.id),
      sessionIds: [...new Set(rows.flatMap(row => row.sessionId ?? []))].slice(0, 5),
    }
    this.#known.set(team, found)
    return found
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}

interface AnyAnswer {
  data?: { id: string; sessionId: string | null }[]
  total?: number
  error?: { message: string }
  [field: string]: unknown
}

const percentiles = (times: number[]) => ({ p50Ms: percentile(times, 0.5), p95Ms: percentile(times, 0.95) })
