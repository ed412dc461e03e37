#!/usr/bin/env node
// The `agh` command. Plain JavaScript without dependencies, because it runs before either exists: it checks the Node
// version, installs what package-lock.json names when node_modules does not hold it, builds when dist/ is older than
// the sources, and hands over to dist/bin/<command>.js in this same process, so that signals reach it directly.
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { isBuilt } from './build.mjs'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const OLDEST_NODE = [20, 19]

const commands = {
  start: { entry: 'bin/start.js', says: 'everything on this machine: PostgreSQL, control plane, proxy' },
  proxy: { entry: 'proxy/main.js', says: 'the data plane alone' },
  'control-plane': { entry: 'control-plane/main.js', says: 'the control plane alone' },
  migrate: {
    entry: 'bin/migrate.js',
    says: 'bring the database of DATABASE_URL to the schema of this version',
  },
  doctor: { entry: 'bin/doctor.js', says: 'check the configuration and every dependency, in words' },
  test: { entry: 'test/run.js', says: 'the test suite' },
  bench: { entry: 'bench/run.js', says: 'the benchmark' },
}

async function main() {
  const [name, ...rest] = process.argv.slice(2)
  if (name === undefined || !Object.hasOwn(commands, name)) {
    const asked = name === undefined || name === 'help' || name === '--help' || name === '-h'
    if (!asked) console.error(`agh: there is no command '${name}'.\n`)
    console.log(usage())
    process.exitCode = asked ? 0 : 2
    return
  }
  await installWhenNeeded()
  await buildWhenNeeded()
  const entry = join(root, 'dist', commands[name].entry)
  process.argv = [process.argv[0], entry, ...rest]
  process.setSourceMapsEnabled(true)
  await import(pathToFileURL(entry).href)
}

function usage() {
  const lines = Object.entries(commands).map(([name, { says }]) => `  agh ${name.padEnd(14)} ${says}`)
  return [
    'Usage: agh <command>   (or: npm run <command>)',
    '',
    ...lines,
    '',
    'Configuration: README.md',
  ].join('\n')
}

async function installWhenNeeded() {
  if (isInstalled({ tools: !isBuilt() })) return
  // Development tools too, whatever NODE_ENV says: the compiler is one of them.
  const args = ['ci', '--include=dev', '--no-audit', '--no-fund']
  const viaNpm = process.env.npm_execpath
  const npm = viaNpm?.endsWith('.js') ? [process.execPath, [viaNpm, ...args]] : ['npm', args]
  const advice =
    'What npm said is above; it needs the npm registry, or a mirror of it (npm config set registry).'
  await step('Installing dependencies (npm ci)', npm, advice)
}

async function buildWhenNeeded() {
  if (isBuilt()) return
  await step(
    'Building',
    [process.execPath, [join(root, 'bin/build.mjs')]],
    'The compiler’s errors are above.',
  )
}

/** Whether node_modules holds every package of package-lock.json that this platform needs, in its version. */
function isInstalled({ tools }) {
  const installedLock = join(root, 'node_modules', '.package-lock.json')
  if (!existsSync(installedLock)) return false
  const wanted = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  const installed = JSON.parse(readFileSync(installedLock, 'utf8')).packages
  return Object.entries(wanted).every(([path, entry]) => {
    if (path === '' || (entry.dev && !tools)) return true
    if (entry.optional && (entry.libc !== undefined || !runsHere(entry))) return true
    return installed[path]?.version === entry.version
  })
}

const runsHere = ({ os, cpu }) =>
  (os === undefined || os.includes(process.platform)) && (cpu === undefined || cpu.includes(process.arch))

/** Runs a command, showing a line when it takes more than a second and its output only when it fails. */
function step(label, [command, args], whenItFails) {
  const startedAt = Date.now()
  const line = setTimeout(() => console.error(`${label} ...`), 1000)
  const child = spawn(command, args, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', text => (said = (said + text).slice(-20_000)))
  return new Promise((resolve, reject) => {
    const fail = why => {
      if (said !== '') console.error(said.trimEnd())
      reject(Object.assign(new Error(`${why} ${whenItFails}`), { name: 'StepFailed' }))
    }
    child.once('error', error => fail(`${command} could not be started: ${error.message}`))
    child.once('close', (code, signal) => {
      clearTimeout(line)
      const seconds = (Date.now() - startedAt) / 1000
      if (code !== 0) return fail(`${label} ended with ${signal ?? `exit code ${code}`}.`)
      if (seconds > 1) console.error(`${label} took ${seconds.toFixed(1)} s.`)
      resolve()
    })
  })
}

const [major, minor] = process.versions.node.split('.').map(Number)
if (major < OLDEST_NODE[0] || (major === OLDEST_NODE[0] && minor < OLDEST_NODE[1])) {
  console.error(
    `agh needs Node.js ${OLDEST_NODE.join('.')} or later; this is ${process.versions.node} (${process.execPath}).\n` +
      'Install a newer one from https://nodejs.org or with your version manager.',
  )
  process.exit(1)
}
main().catch(error => {
  // A ConfigError is one line for the person at the terminal; anything else is a fault of agh and shows its stack.
  const isPlain = ['ConfigError', 'SchemaError', 'StepFailed'].includes(error?.name)
  console.error(isPlain ? `agh: ${error.message}` : error)
  process.exitCode = 1
})
