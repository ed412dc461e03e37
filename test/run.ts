/**
 * `npm test`: starts one PostgreSQL (embedded) and one Redis (if there is a redis-server) for the whole run, migrates a
 * template database, runs tap on the compiled test files, stops both. `npm test -- dist/test/shared/…` runs a few.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmbeddedPostgres } from '../bin/embedded-postgres.js'
import { migrate } from '../control-plane/db/migrate.js'
import { databaseUrl, onServer } from './support/postgres.js'

const testRoot = dirname(fileURLToPath(import.meta.url))
const projectRoot = dirname(dirname(testRoot))
const tapIsBuilt = join(projectRoot, 'node_modules', '.agh-tap-is-built')

async function run(): Promise<number> {
  const scratch = mkdtempSync(join(tmpdir(), 'agh-test-'))
  // Under root the server runs as the user postgres, who must be able to enter.
  chmodSync(scratch, 0o755)
  const postgres = await startPostgres(scratch)
  const redis = await startRedis(scratch)
  try {
    await onServer(postgres.url, 'create database agh_template')
    await migrate(databaseUrl(postgres.url, 'agh_template'))
    return await runTap({ TEST_DATABASE_SERVER: postgres.url, ...(redis && { TEST_REDIS_URL: redis.url }) })
  } finally {
    await redis?.stop()
    await postgres.stop()
    rmSync(scratch, { recursive: true, force: true })
  }
}

async function startPostgres(scratch: string) {
  const given = process.env.TEST_DATABASE_SERVER
  if (given !== undefined) return { url: given, stop: async () => {} }
  return startEmbeddedPostgres({
    dataDir: join(scratch, 'postgres'),
    port: await freePort(),
    // Durability off: the files are thrown away; the tests that kill PostgreSQL start one of their own.
    settings: ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'max_connections=300'],
  })
}

async function startRedis(scratch: string) {
  const given = process.env.TEST_REDIS_URL
  if (given !== undefined) return { url: given, stop: async () => {} }
  const port = await freePort()
  const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', scratch]
  const server = spawn('redis-server', flags, { stdio: 'ignore' })
  const missing = await new Promise<boolean>(resolve => {
    server.once('error', () => resolve(true))
    server.once('spawn', () => resolve(false))
  })
  if (missing) return null
  await reachable(port)
  return { url: `redis://127.0.0.1:${port}`, stop: () => stopped(server) }
}

async function runTap(env: Record<string, string>): Promise<number> {
  const named = process.argv.slice(2).filter(argument => !argument.startsWith('-'))
  const flags = process.argv.slice(2).filter(argument => argument.startsWith('-'))
  const files = named.length > 0 ? named : everyTestFile()
  if (!existsSync(tapIsBuilt)) {
    // tap loads a TypeScript compiler into every test unless it is rebuilt without that plugin; ours are compiled.
    await tapCommand(['build'], {})
    writeFileSync(tapIsBuilt, '')
  }
  const { code, output } = await tapCommand(['run', '--reporter=tap', ...flags, ...files], env)
  const [total, failed] = [/# \{ total: (\d+)/, /# \{[^}]*fail: (\d+)/].map(count =>
    Number(count.exec(output)?.[1] ?? 0),
  )
  console.log(`${(total ?? 0) - (failed ?? 0)} passed, ${failed} failed`)
  return code
}

/** @returns the exit code and the last 2,000 characters that it printed. */
function tapCommand(args: string[], env: Record<string, string>): Promise<{ code: number; output: string }> {
  const tap = join(dirname(createRequire(import.meta.url).resolve('tap/package.json')), 'dist/esm/run.mjs')
  const child = spawn(process.execPath, [tap, ...args], {
    cwd: projectRoot,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  })
  let output = ''
  child.stdout.on('data', (text: Buffer) => {
    process.stdout.write(text)
    output = (output + text.toString('latin1')).slice(-2000)
  })
  return new Promise(resolve => child.once('exit', code => resolve({ code: code ?? 1, output })))
}

function everyTestFile(): string[] {
  const entries = readdirSync(testRoot, { recursive: true, encoding: 'utf8' })
  const files = entries.filter(name => name.endsWith('.test.js')).sort()
  return files.map(name => relative(projectRoot, join(testRoot, name)))
}

const freePort = () =>
  new Promise<number>(resolve => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as { port: number }
      server.close(() => resolve(port))
    })
  })

async function reachable(port: number): Promise<void> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const open = await new Promise<boolean>(resolve => {
      const socket = connect(port, '127.0.0.1')
      socket.once('connect', () => resolve(true))
      socket.once('error', () => resolve(false))
      socket.once('close', () => socket.destroy())
      socket.once('connect', () => socket.end())
    })
    if (open) return
    await new Promise(resolve => setTimeout(resolve, 50))
  }
  throw new Error(`redis-server does not listen on port ${port}`)
}

function stopped(child: ChildProcess): Promise<void> {
  return new Promise(resolve => {
    child.once('exit', () => resolve())
    child.kill('SIGTERM')
  })
}

process.exitCode = await run()
