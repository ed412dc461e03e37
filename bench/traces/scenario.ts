/**
 * `npm run bench -- traces`: the trace store with two million spans in 400,000 traces of 20 teams, loaded through the
 * product's own write path; asked everything that people ask of it at one million and at two, for the largest and the
 * smallest team; and how fast it takes more. About half an hour. `SPANS=200000` for a quick look.
 * PostgreSQL is the embedded one, or that of DATABASE_URL, in a database of its own; then nothing is said of plans and
 * of PostgreSQL's CPU. Needs Linux and taskset.
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbeddedPostgres } from '../../bin/embedded-postgres.js'
import { migrate } from '../../control-plane/db/migrate.js'
import { connectSql } from '../../control-plane/db/sql.js'
import { onServer, databaseUrl as urlOf } from '../../test/support/postgres.js'
import { freePort, LOAD_CORE, listening, type Started, SUBJECT_CORE, start } from '../processes.js'
import { machine } from '../report.js'
import { checkAnalytics, countLost, countWrongTraces } from './check.js'
import { doors, measureIngestion, type Sent } from './ingestion.js'
import { loadTraces, seedTeams, settle } from './load.js'
import { logPlans, planSettings, type Work, workOf } from './plans.js'
import { Asker, questions } from './questions.js'
import { type Measured, type Size, type Stage, type TracesReport, tables } from './report.js'
import { type BenchTeam, makeTeams } from './world.js'

const FULL = 2_000_000
const SPANS = Number(process.env.SPANS ?? FULL)
const REQUESTS = SPANS < FULL ? 20 : 40
/** Of each door at each stage. */
const INGESTED = Math.min(50_000, SPANS / 20)

type CleanUp = () => Promise<unknown>

interface Store {
  databaseUrl: string
  /** null: a server that is not ours. */
  own: { pid: number; logFile: string } | null
}

interface Scene {
  store: Store
  teams: BenchTeam[]
  sized: Record<Size, BenchTeam>
  secret: string
}

export async function benchTraces(): Promise<void> {
  if (!(SPANS >= 20_000)) throw new Error('SPANS is a number of spans, 20000 at least.')
  const scratch = mkdtempSync(join(tmpdir(), 'agh-bench-'))
  chmodSync(scratch, 0o755)
  // Some gigabytes by then; PostgreSQL stops by itself when this process is gone.
  process.once('SIGINT', () => {
    rmSync(scratch, { recursive: true, force: true })
    process.exit(130)
  })
  const cleanUp: CleanUp[] = []
  try {
    const store = await openStore(scratch, cleanUp)
    const teams = makeTeams()
    const [large, small] = [teams[0] as BenchTeam, teams.at(-1) as BenchTeam]
    const scene: Scene = {
      store,
      teams,
      sized: { large, small },
      secret: randomBytes(32).toString('base64url'),
    }
    const sql = connectSql(store.databaseUrl, { deadlineMs: 60_000, max: 1 })
    await seedTeams(sql, teams, Date.now())
    await sql.end({ timeout: 5 })
    const stages = [await stage(scene, 1), await stage(scene, 2)]
    const report: TracesReport = {
      date: new Date().toISOString().slice(0, 10),
      machine: machine(),
      node: process.version,
      teams: { large: { share: large.share }, small: { share: small.share } },
      stages,
    }
    console.log(`\n${tables(report)}\n`)
    save(report)
  } finally {
    for (const step of cleanUp.reverse()) await step().catch(error => console.error(error))
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function openStore(scratch: string, cleanUp: CleanUp[]): Promise<Store> {
  const given = process.env.DATABASE_URL
  if (given !== undefined && given !== '') {
    const name = `agh_bench_${randomBytes(4).toString('hex')}`
    await onServer(given, `create database ${name}`)
    cleanUp.push(() => onServer(given, `drop database if exists ${name} with (force)`))
    const databaseUrl = urlOf(given, name)
    await migrate(databaseUrl)
    return { databaseUrl, own: null }
  }
  const logFile = join(scratch, 'postgres.log')
  const postgres = await startEmbeddedPostgres({
    dataDir: join(scratch, 'postgres'),
    port: await freePort(),
    settings: planSettings,
    logFile,
  })
  cleanUp.push(postgres.stop)
  await migrate(postgres.url)
  return { databaseUrl: postgres.url, own: { pid: postgres.pid, logFile } }
}

/** Half of the spans more, then everything that is measured. */
async function stage(scene: Scene, number: 1 | 2): Promise<Stage> {
  const { store, teams } = scene
  const nowMs = Date.now()
  const say = (what: string) => console.log(`stage ${number}: ${what}`)
  const held = await size(store.databaseUrl)
  const missing = (SPANS * number) / 2 - held.spans
  say(`loading ${Math.round(missing)} spans`)
  const loaded = await loadTraces(store.databaseUrl, teams, { seed: 1_000 + number, spans: missing, nowMs })
  say(`loaded in ${Math.round(loaded.ms / 1_000)} s, settling`)
  await settle(store.databaseUrl)
  const { spans, megabytes } = await size(store.databaseUrl)
  say('asking')
  const measured = await withControlPlane(scene, asking => ask(scene, asking.asker))
  await addPlans(scene, measured, say)
  say('ingesting')
  const { sent, found } = await withControlPlane(scene, running =>
    ingestAndCheck(scene, running, number, nowMs),
  )
  return {
    spans,
    databaseMegabytes: megabytes,
    loadSpansPerSecond: (1_000 * loaded.spans) / loaded.ms,
    measured,
    ingestion: sent.map(({ traceIds: _, allSpans: __, ...figures }) => figures),
    findings: found,
  }
}

async function ask({ sized }: Scene, asker: Asker): Promise<Measured[]> {
  const measured: Measured[] = []
  for (const question of questions) {
    const answers = {
      large: await asker.ask(question, sized.large, REQUESTS),
      small: await asker.ask(question, sized.small, REQUESTS),
    }
    measured.push({ question: question.name, answers, work: null })
  }
  return measured
}

/** After six executions on one connection PostgreSQL may keep a statement's plan; the server has a few connections. */
const SETTLED = 24

/** Each question a few times more, and what PostgreSQL did the last time. */
async function addPlans(scene: Scene, measured: Measured[], say: (what: string) => void): Promise<void> {
  const { own, databaseUrl } = scene.store
  if (own === null) return
  say('reading plans')
  await logPlans(databaseUrl, true)
  await withControlPlane(scene, async ({ asker }) => {
    for (const [place, question] of questions.entries()) {
      const work: Partial<Record<Size, Work>> = {}
      for (const size of ['large', 'small'] as const) {
        const team = scene.sized[size]
        const path = question.paths(team, await asker.known(team))[0] ?? ''
        for (let turn = 0; turn < SETTLED; turn++) await asker.get(path, team)
        work[size] = await workOf(own.logFile, () => asker.get(path, team))
      }
      const row = measured[place]
      if (row !== undefined) row.work = work as Record<Size, Work>
    }
  })
  await logPlans(databaseUrl, false)
}

async function ingestAndCheck(scene: Scene, running: Running, number: number, nowMs: number) {
  const { store, teams, sized } = scene
  const sent: Sent[] = []
  let lostOrDoubled = 0
  for (const [place, door] of doors.entries()) {
    const seen = await measureIngestion(door, teams, {
      origin: running.origin,
      spans: INGESTED,
      seed: 10 * number + place,
      controlPlanePid: running.program.pid,
      postgresPid: store.own?.pid ?? null,
    })
    lostOrDoubled += await countLost(store.databaseUrl, seen.traceIds, seen.allSpans)
    sent.push(seen)
  }
  const wrongTraces = await countWrongTraces(store.databaseUrl, sized.small)
  const analytics = await checkAnalytics(store.databaseUrl, running.asker, sized.large, nowMs)
  const none = { wrongBuckets: 0, buckets: 0, percentileError: Number.NaN }
  return { sent, found: { lostOrDoubled, wrongTraces, ...(analytics ?? none) } }
}

interface Running {
  program: Started
  origin: string
  asker: Asker
}

async function withControlPlane<T>(scene: Scene, work: (running: Running) => Promise<T>): Promise<T> {
  const port = await freePort()
  const main = fileURLToPath(new URL('../../control-plane/main.js', import.meta.url))
  // Both cores for everybody: the control plane, PostgreSQL and the load share them as they would on one machine.
  const program = start('control plane', `${SUBJECT_CORE},${LOAD_CORE}`, [process.execPath, main], {
    DATABASE_URL: scene.store.databaseUrl,
    AGH_SECRET: scene.secret,
    CONTROL_PLANE_PORT: String(port),
    LOG_LEVEL: 'warn',
  })
  const origin = `http://127.0.0.1:${port}`
  const asker = new Asker(origin)
  try {
    await listening(port, program)
    return await work({ program, origin, asker })
  } catch (error) {
    console.error(program.output().slice(-2_000))
    throw error
  } finally {
    await asker.close()
    await program.stop()
  }
}

async function size(databaseUrl: string): Promise<{ spans: number; megabytes: number }> {
  const sql = connectSql(databaseUrl, { deadlineMs: 60_000, max: 1 })
  const [row] = await sql<{ spans: number; megabytes: number }[]>`
    select coalesce(sum(span_count), 0)::double precision as spans,
      pg_database_size(current_database())::double precision / 1e6 as megabytes from traces`
  await sql.end({ timeout: 5 })
  return row ?? { spans: 0, megabytes: 0 }
}

/** The full size beside the other results; a quick look beside nothing. */
function save(report: TracesReport): void {
  const folder =
    SPANS === FULL ? fileURLToPath(new URL('../../../bench/results/', import.meta.url)) : tmpdir()
  mkdirSync(folder, { recursive: true })
  const file = join(folder, SPANS === FULL ? 'traces.json' : `agh-bench-traces-${SPANS}.json`)
  writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`)
  console.log(`written to ${file}`)
}
