import { connectSql, inTransaction, type Sql } from '../../control-plane/db/sql.js'
import { insertFeedback } from '../../control-plane/feedback/queries.js'
import { foldRollups } from '../../control-plane/traces/fold-rollups.js'
import { writeSpans } from '../../control-plane/traces/ingest.js'
import { createPartitionsAhead, WEEK_MS } from '../../control-plane/traces/partitions.js'
import { feedbackSource } from '../../shared/contract/feedback.js'
import { API_KEY_PREFIX, hashToken, lastFour, mintKey } from '../../shared/secrets/token.js'
import { type BenchTrace, lot, traceSource } from './data.js'
import { between, pick, seeded, sentence, uuid } from './random.js'
import { type BenchTeam, DAY_MS, HISTORY_DAYS } from './world.js'

/** Traces a transaction: about 500 spans, what a busy proxy ships. */
const BATCH = 100
const WRITERS = 3
/** One trace of thirty has feedback. */
const JUDGED = 1 / 30

/** Teams with a key each, their prompts, and the weeks that a service of this age would have. */
export async function seedTeams(sql: Sql, teams: readonly BenchTeam[], nowMs: number): Promise<void> {
  const createdAt = new Date(nowMs - HISTORY_DAYS * DAY_MS)
  for (const [place, team] of teams.entries()) {
    const teamId = team.id
    await sql`insert into teams ${sql({ id: teamId, name: `Team ${place + 1}`, capturePayloads: true, createdAt })}`
    team.key = mintKey(API_KEY_PREFIX)
    const key = {
      teamId,
      id: uuid(Math.random),
      name: 'bench',
      keyHash: hashToken(team.key),
      lastFour: lastFour(team.key),
    }
    await sql`insert into api_keys ${sql({ ...key, createdAt })}`
    for (const { id: promptId, name, versionIds } of team.prompts) {
      await sql`insert into prompts ${sql({ teamId, id: promptId, name, createdAt })}`
      const versions = versionIds.map((id, index) => ({
        teamId,
        id,
        promptId,
        versionNumber: index + 1,
        messages: '[]',
        variables: [],
        createdAt,
      }))
      for (const version of versions) await sql`insert into prompt_versions ${sql(version)}`
    }
  }
  for (let ms = nowMs - HISTORY_DAYS * DAY_MS - WEEK_MS; ms <= nowMs; ms += WEEK_MS) {
    await createPartitionsAhead(sql, ms)
  }
}

/**
 * Stores traces that were received evenly over the last 40 days, oldest first, through the product's own write path
 * with the clock set back; so rollups, search and whatever else ingestion keeps are what it would have left. A second
 * call with another seed makes every day of every team as dense again.
 *
 * @returns spans and milliseconds.
 */
export async function loadTraces(
  databaseUrl: string,
  teams: readonly BenchTeam[],
  { seed, spans: wanted, nowMs }: { seed: number; spans: number; nowMs: number },
): Promise<{ spans: number; ms: number }> {
  const sql = connectSql(databaseUrl, { deadlineMs: 120_000, max: WRITERS, name: 'agh-bench-load' })
  const startedAt = performance.now()
  const next = traceSource(teams, seed)
  const spanMs = HISTORY_DAYS * DAY_MS - 60_000
  let stored = 0
  let taken = 0
  const write = async () => {
    while (taken < wanted) {
      const receivedAtMs = Math.floor(nowMs - 60_000 - spanMs * (1 - taken / wanted))
      const batch = Array.from({ length: BATCH }, () => next(receivedAtMs))
      taken += batch.reduce((sum, trace) => sum + trace.spans.length, 0)
      const created = await storeBatch(sql, batch, receivedAtMs, nowMs)
      stored += created
    }
  }
  try {
    await Promise.all(Array.from({ length: WRITERS }, write))
  } finally {
    await sql.end({ timeout: 5 })
  }
  return { spans: stored, ms: performance.now() - startedAt }
}

async function storeBatch(
  sql: Sql,
  batch: readonly BenchTrace[],
  receivedAtMs: number,
  nowMs: number,
): Promise<number> {
  return inTransaction(sql, async tx => {
    const spans = batch.flatMap(trace => trace.spans)
    const { created } = await writeSpans(tx, spans, receivedAtMs, { repeated: 'keep', foreign: 'refuse' })
    for (const { team, spans: own } of batch) {
      const traceId = own[0]?.trace.id ?? ''
      if (lot(traceId) < JUDGED)
        await judge(
          tx,
          team.id,
          traceId,
          own.map(span => span.spanId),
          receivedAtMs,
          nowMs,
        )
    }
    return created
  })
}

/** One or two rows on a trace, within two days of its receipt. */
async function judge(
  tx: Sql,
  teamId: string,
  traceId: string,
  spanIds: readonly string[],
  receivedAtMs: number,
  nowMs: number,
): Promise<void> {
  const random = seeded(Math.floor(lot(traceId) * 4_294_967_296))
  const trace = { teamId, traceId, traceReceivedAt: new Date(receivedAtMs) }
  for (let rows = between(random, 1, 2); rows > 0; rows--) {
    const at = new Date(Math.min(nowMs, receivedAtMs + between(random, 0, 2 * DAY_MS)))
    await insertFeedback(tx, trace, {
      id: uuid(random),
      traceId,
      spanId: random() < 0.3 ? pick(random, spanIds) : null,
      rating: random() < 0.9 ? between(random, -1, 5) : null,
      label: random() < 0.5 ? pick(random, ['helpful', 'wrong', 'slow', 'tone']) : null,
      comment: random() < 0.3 ? sentence(random, 20) : 'ok',
      source: pick(random, feedbackSource.options),
      createdBy: null,
      createdAt: at,
      updatedAt: at,
    })
  }
}

/** As the jobs and autovacuum leave tables that nobody writes to any more. */
export async function settle(databaseUrl: string): Promise<void> {
  const sql = connectSql(databaseUrl, { deadlineMs: 600_000, max: 1, name: 'agh-bench-settle' })
  await foldRollups(sql)
  await sql.unsafe('vacuum (analyze)')
  await sql.unsafe('checkpoint')
  await sql.end({ timeout: 5 })
}
