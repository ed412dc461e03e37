/**
 * `npm run bench`: every subject in one run on one machine, rounds interleaved, one table. CPU per request counts the
 * subject's own utime + stime; the subject has core 0, everything else core 1. About four minutes.
 * Needs Linux, wrk, nginx, redis-server and taskset (Debian: apt-get install wrk nginx redis-server util-linux).
 */
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbeddedPostgres } from '../bin/embedded-postgres.js'
import { migrate } from '../control-plane/db/migrate.js'
import { startControlPlaneStub } from './control-plane-stub.js'
import { addedLatency } from './latency.js'
import { freePort, LOAD_CORE, listening, median, residentMegabytes, sleep, start } from './processes.js'
import { machine, type Report, type Row, table } from './report.js'
import { slowStreams } from './streams.js'
import { agh, direct, nginx, portkey, type Subject, type Surroundings } from './subjects.js'
import { type Throughput, throughput } from './wrk.js'

/** `--quick` for a look while working: fewer and shorter rounds, no table on disk. */
const quick = process.argv.includes('--quick')
const ROUNDS = quick ? 1 : 3
const SECONDS = quick ? 3 : 5
const CONNECTIONS = 64
const STREAMS = 1_000

type CleanUp = () => Promise<unknown>

async function run(): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), 'agh-bench-'))
  // nginx and the embedded PostgreSQL may run as other users.
  chmodSync(scratch, 0o755)
  const cleanUp: CleanUp[] = []
  try {
    const around = await surroundings(scratch, cleanUp)
    const subjects = await startSubjects(around, cleanUp)
    const rows = await measure(subjects, scratch)
    const date = new Date().toISOString().slice(0, 10)
    const report: Report = { date, machine: machine(), node: process.version, rows }
    console.log(`\n${table(report)}`)
    if (!quick) save(report)
  } finally {
    for (const step of cleanUp.reverse()) await step().catch(error => console.error(error))
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function surroundings(scratch: string, cleanUp: CleanUp[]): Promise<Surroundings> {
  const upstreamPort = await freePort()
  const script = fileURLToPath(new URL('mock-upstream.js', import.meta.url))
  const upstream = start('mock upstream', LOAD_CORE, [process.execPath, script, String(upstreamPort)])
  cleanUp.push(upstream.stop)
  await listening(upstreamPort, upstream)
  return { scratch, upstream, upstreamPort, aghSecret: randomBytes(32).toString('base64url') }
}

async function startSubjects(around: Surroundings, cleanUp: CleanUp[]): Promise<Subject[]> {
  const { aghSecret, upstreamPort, scratch } = around
  const redisPort = await freePort()
  const redis = start('redis', LOAD_CORE, [
    'redis-server',
    '--port',
    String(redisPort),
    '--save',
    '',
    '--dir',
    scratch,
  ])
  cleanUp.push(redis.stop)
  await listening(redisPort, redis)
  const redisUrl = `redis://127.0.0.1:${redisPort}`

  const postgres = await startEmbeddedPostgres({ dataDir: join(scratch, 'postgres'), port: await freePort() })
  cleanUp.push(postgres.stop)
  const databaseUrl = postgres.url
  await migrate(databaseUrl)

  const onRedis = await startControlPlaneStub({ aghSecret, upstreamPort, redisUrl })
  const onPostgres = await startControlPlaneStub({ aghSecret, upstreamPort, databaseUrl })
  cleanUp.push(onRedis.close, onPostgres.close)
  const subjects = [
    direct(around),
    await nginx(around),
    await agh(around, { name: 'agh on Redis', controlPlane: onRedis, env: { REDIS_URL: redisUrl } }),
    await agh(around, {
      name: 'agh on PostgreSQL',
      controlPlane: onPostgres,
      env: { DATABASE_URL: databaseUrl },
      callsPerSecond: 200,
    }),
    await agh(around, {
      name: 'agh on node:http',
      controlPlane: onRedis,
      env: { REDIS_URL: redisUrl, PROXY_HTTP: 'node' },
    }),
    await portkey(around),
  ]
  cleanUp.push(...subjects.map(subject => subject.stop))
  return subjects
}

/** Memory first, on processes that have done nothing yet; then CPU in interleaved rounds; then the rest, one by one. */
async function measure(subjects: Subject[], scratch: string): Promise<Row[]> {
  const resting = new Map<Subject, Resting>()
  for (const subject of subjects) resting.set(subject, await rest(subject))
  const load = { connections: CONNECTIONS, bodyBytes: 0 }
  const rounds = new Map<Subject, Throughput[]>(subjects.map(subject => [subject, []]))
  for (const subject of subjects) await throughput(subject, { ...load, seconds: 2 }, scratch)
  for (let round = 1; round <= ROUNDS; round++) {
    for (const subject of subjects) {
      const seen = await throughput(subject, { ...load, seconds: SECONDS }, scratch)
      rounds.get(subject)?.push(seen)
      console.log(`round ${round}: ${subject.name}: ${seen.cpuMicroseconds.toFixed(1)} µs/request`)
    }
  }
  const rows: Row[] = []
  for (const subject of subjects) {
    const seen = typical(rounds.get(subject) ?? [])
    const others = await latencyAndLarge(subject, subjects[0], scratch)
    rows.push({ name: subject.name, plain: seen, ...others, ...(resting.get(subject) as Resting) })
  }
  return rows
}

type Resting = Pick<Row, 'idleMegabytes' | 'streams'>

async function rest(subject: Subject): Promise<Resting> {
  const idleMegabytes = residentMegabytes(subject.pids())
  if (subject.streamPath === null || subject.name === 'direct') return { idleMegabytes, streams: null }
  console.log(`streams: ${subject.name}`)
  const streams = await slowStreams(subject, STREAMS, quick ? 3 : 5)
  return { idleMegabytes, streams }
}

async function latencyAndLarge(
  subject: Subject,
  straight: Subject | undefined,
  scratch: string,
): Promise<Pick<Row, 'large' | 'latency'>> {
  console.log(`latency and large bodies: ${subject.name}`)
  const large = await throughput(subject, { seconds: SECONDS, connections: 16, bodyBytes: 100_000 }, scratch)
  const rate = { perSecond: subject.callsPerSecond, seconds: quick ? 3 : 6 }
  if (subject === straight || straight === undefined) return { large, latency: null }
  await sleep(500)
  return { large, latency: await addedLatency(subject, straight, rate) }
}

/** The round with the median cost: its figures belong together. */
function typical(seen: Throughput[]): Throughput {
  const middle = median(seen.map(round => round.cpuMicroseconds))
  const found = seen.find(round => round.cpuMicroseconds === middle)
  if (found === undefined) throw new Error('no round was measured')
  return found
}

function save(report: Report): void {
  const folder = fileURLToPath(new URL('../../bench/results/', import.meta.url))
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'latest.json'), `${JSON.stringify(report, null, 2)}\n`)
  console.log('written to bench/results/latest.json')
}

/** `npm run bench -- <name>`; without a name the proxy's. */
const scenarios: Record<string, () => Promise<void>> = {
  proxy: run,
  templates: async () => (await import('./templates.js')).benchTemplates(),
  traces: async () => (await import('./traces/scenario.js')).benchTraces(),
}

const scenario = process.argv.slice(2).find(argument => !argument.startsWith('-')) ?? 'proxy'
const bench = scenarios[scenario]
if (bench === undefined)
  throw new Error(`There is no scenario '${scenario}': ${Object.keys(scenarios).join(', ')}.`)
await bench()
