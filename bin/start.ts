/**
 * `agh start`: everything on this machine from one command (spec 4, section 1). PostgreSQL when DATABASE_URL is unset,
 * migrations, the first owner and keys on an empty database, the control plane and the proxy as children; a banner; and
 * at the end everything is stopped in the opposite order, so that nothing loses what it depends on.
 */
import { join } from 'node:path'
import { SchemaError } from '../control-plane/db/migrations.js'
import { urlHost } from '../proxy/config.js'
import { ConfigError } from '../shared/config/environment.js'
import { banner } from './banner.js'
import { startChild } from './child.js'
import { type DataDir, openDataDir } from './data-dir.js'
import { prepareTeam } from './first-start.js'
import { lineWriter, readable } from './log-lines.js'
import { migrateOrSay } from './migrate-or-say.js'
import { startOwnDatabase } from './own-database.js'
import { usablePort } from './ports.js'
import { step } from './progress.js'
import {
  type Programs,
  programEnvironment,
  readStartEnvironment,
  type StartEnvironment,
} from './start-environment.js'

/** The proxy gives running streams 30 s (design D15); a little more before it is killed. */
const PROXY_GRACE_MS = 35_000
const CONTROL_PLANE_GRACE_MS = 15_000
/** A terminal's Ctrl-C reaches npm too, which passes it on: the same one arrives twice within milliseconds. */
const SAME_SIGNAL_MS = 1_000

interface Running {
  stop(): Promise<void> | void
  kill(): void
}

/** What runs, in the order in which it was started. */
const running: Running[] = []
let stoppedAt: number | null = null
let isUp = false

class Stopped extends Error {}

async function start(): Promise<void> {
  const given = readStartEnvironment(process.env)
  // The spool, the logs and the secrets are nobody else's.
  process.umask(0o077)
  const dataDir = openDataDir(given.DATA_DIR)
  running.push({ stop: dataDir.release, kill: dataDir.release })
  const port = await usablePort('PORT', given.HOST, given.PORT)
  const controlPlaneHost = given.CONTROL_PLANE_HOST
  const controlPlanePort = await usablePort('CONTROL_PLANE_PORT', controlPlaneHost, given.CONTROL_PLANE_PORT)
  if (port === controlPlanePort) throw new ConfigError(`PORT and CONTROL_PLANE_PORT both hold ${port}.`)
  const settle = (database: string) =>
    programEnvironment(process.env, {
      DATABASE_URL: database,
      AGH_SECRET: given.AGH_SECRET ?? dataDir.secret('secret'),
      DATA_DIR: dataDir.path,
      PORT: port,
      CONTROL_PLANE_PORT: controlPlanePort,
    })
  // Once for the sake of its checks: a wrong variable is told before anything is started.
  settle(given.DATABASE_URL ?? 'postgres://127.0.0.1/agh')
  const database = given.DATABASE_URL ?? (await next('Starting PostgreSQL', () => ownDatabase(dataDir)))
  const programs = settle(database)
  await next('Bringing the database to this version', () => migrateOrSay(database))
  const first = await next('Preparing the first team', () => prepareTeam(programs, process.env))
  await startPrograms(programs, given, dataDir)
  const origin = `http://${urlHost(given.HOST)}:${port}`
  console.log(banner({ origin, dataDir: dataDir.path }, first))
  first?.shown()
  isUp = true
}

/** One step; none begins once a stop was asked for. */
function next<T>(label: string, work: () => Promise<T>): Promise<T> {
  if (stoppedAt !== null) throw new Stopped()
  return step(label, work)
}

async function ownDatabase(dataDir: DataDir): Promise<string> {
  const database = await startOwnDatabase(dataDir, say)
  running.push(database)
  return database.url
}

async function startPrograms(programs: Programs, given: StartEnvironment, dataDir: DataDir): Promise<void> {
  const program = (name: string, file: string, host: string, port: number, graceMs: number) =>
    startChild({
      name,
      entry: `${file}/main.js`,
      env: programs.env,
      readyUrl: `http://${urlHost(host)}:${port}/readyz`,
      onLine: lineWriter(join(dataDir.path, 'logs', `${file}.log`), line => shown(name, line)),
      onStarted: child => running.push({ stop: () => child.stop(graceMs), kill: () => child.kill() }),
      say,
    })
  const { CONTROL_PLANE_HOST: host, CONTROL_PLANE_PORT: port } = programs.controlPlane
  await next('Starting the control plane', () =>
    program('control plane', 'control-plane', host, port, CONTROL_PLANE_GRACE_MS),
  )
  await next('Starting the proxy', () =>
    program('proxy', 'proxy', given.HOST, programs.proxy.port, PROXY_GRACE_MS),
  )
}

/** With LOG_LEVEL set every line; else what a person should see, from the banner on: a start has its own words. */
function shown(name: string, line: string): string | null {
  if (process.env.LOG_LEVEL !== undefined) return line
  return isUp ? readable(name, line) : null
}

/** The proxy drains, then the control plane takes what it shipped, then PostgreSQL. */
async function stopAll(): Promise<void> {
  for (let part = running.pop(); part !== undefined; part = running.pop()) await part.stop()
}

function onSignal(signal: NodeJS.Signals): void {
  if (stoppedAt !== null) {
    if (Date.now() - stoppedAt < SAME_SIGNAL_MS) return
    for (const part of running.reverse()) part.kill()
    process.exit(130)
  }
  stoppedAt = Date.now()
  say(`${signal}: stopping. Running calls may finish; a second Ctrl-C does not wait.`)
  stopAll().then(
    () => {
      say('Stopped.')
      process.exit(0)
    },
    error => {
      console.error(error)
      process.exit(1)
    },
  )
}

function say(text: string): void {
  console.log(`agh: ${text}`)
}

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, onSignal)
// A terminal that went away must not take the service down with it before it has stopped in order.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

start().catch(async (error: Error) => {
  // A stop that was asked for breaks whatever step was running.
  if (stoppedAt !== null) return
  await stopAll()
  const isForPeople = error instanceof ConfigError || error instanceof SchemaError
  console.error(isForPeople ? `agh: ${error.message}` : error)
  process.exit(1)
})
