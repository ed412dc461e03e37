/** `agh start` as a person runs it: a process, a DATA_DIR of its own, an embedded PostgreSQL. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { freePort } from '../../bin/ports.js'

const entry = (name: string) => fileURLToPath(new URL(`../../bin/${name}.js`, import.meta.url))

interface Run {
  output(): string
  pid: number
  /** Waits for a text in the output; fails when the process ends before. */
  says(text: string): Promise<void>
  end(signal: NodeJS.Signals): Promise<number | null>
  ended: Promise<number | null>
}

/** Its own DATA_DIR and ports; no variable of the machine that runs the tests. */
async function place(t: Test): Promise<Record<string, string>> {
  const dir = mkdtempSync(join(tmpdir(), 'agh-start-'))
  chmodSync(dir, 0o755)
  t.teardown(() => rmSync(dir, { recursive: true, force: true }))
  return {
    PATH: process.env.PATH ?? '',
    DATA_DIR: join(dir, 'data'),
    PORT: String(await freePort()),
    CONTROL_PLANE_PORT: String(await freePort()),
  }
}

function start(t: Test, env: Record<string, string>): Run {
  const child = spawn(process.execPath, [entry('start')], { env, stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (text: Buffer) => {
      output += text
    })
  }
  const ended = new Promise<number | null>(resolve => child.once('close', code => resolve(code)))
  const end = (signal: NodeJS.Signals) => {
    if (child.exitCode === null && child.signalCode === null) child.kill(signal)
    return ended
  }
  t.teardown(() => end('SIGTERM'))
  return {
    output: () => output,
    pid: child.pid ?? 0,
    ended,
    end,
    async says(text) {
      for (const startedAt = Date.now(); Date.now() - startedAt < 60_000; await sleep(20)) {
        if (output.includes(text)) return
        if (child.exitCode !== null) break
      }
      throw new Error(`agh start did not say '${text}': ${output}`)
    },
  }
}

const UP = 'Ctrl-C stops everything.'

function secretsOf(output: string) {
  const find = (pattern: RegExp) => pattern.exec(output)?.[0] ?? ''
  return {
    virtualKey: find(/\bagh_sk_[\w-]{40}/),
    apiKey: find(/aghapi_sk_[\w-]{40}/),
    password: /Password +(\S+)/.exec(output)?.[1] ?? '',
  }
}

const get = async (env: Record<string, string>, path: string, key: string) => {
  const headers = { authorization: `Bearer ${key}` }
  return (await fetch(`http://127.0.0.1:${env.PORT}/api/v1${path}`, { headers })).json() as Promise<{
    total: number
    data: { id: string; totalCostUsd: number | null }[]
  }>
}

async function complete(env: Record<string, string>, key: string, extra: object = {}) {
  const response = await fetch(`http://127.0.0.1:${env.PORT}/api/v1/gateway/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'demo', messages: [{ role: 'user', content: 'Hello' }], ...extra }),
  })
  return { status: response.status, text: await response.text() }
}

async function eventually(condition: () => Promise<boolean> | boolean, withinMs = 20_000): Promise<boolean> {
  for (const startedAt = Date.now(); Date.now() - startedAt < withinMs; await sleep(50)) {
    if (await condition()) return true
  }
  return false
}

test('the first start answers calls, the second finds everything again', async t => {
  const env = await place(t)
  const first = start(t, env)
  await first.says(UP)
  const { virtualKey, apiKey, password } = secretsOf(first.output())
  t.match(await complete(env, virtualKey), { status: 200, text: /You said: Hello/ })
  t.match((await complete(env, virtualKey, { stream: true })).text, /data: \[DONE\]/)
  const arrived = await eventually(async () => {
    const { total, data } = await get(env, '/traces', apiKey)
    return total === 2 && data.every(trace => (trace.totalCostUsd ?? 0) > 0)
  })
  t.ok(arrived, 'both calls are traces with cost')
  const signedIn = await fetch(`http://127.0.0.1:${env.PORT}/api/v1/auth/login`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: 'owner@localhost', password }),
  })
  t.equal(signedIn.status, 200, 'the printed password works')
  t.equal(statSync(join(env.DATA_DIR ?? '', 'secret')).mode & 0o777, 0o600)

  await t.test('another start on the same DATA_DIR says what is in its way', async t => {
    const other = start(t, { ...env, PORT: '0', CONTROL_PLANE_PORT: '0' })
    t.equal(await other.ended, 1)
    t.match(other.output(), /Another agh start \(process \d+\) uses DATA_DIR/)
  })

  await t.test('a proxy that is killed is started again', async t => {
    const pid = childOf(first.pid, 'proxy/main.js')
    process.kill(pid, 'SIGKILL')
    await first.says('The proxy ended (SIGKILL)')
    t.ok(await eventually(async () => (await complete(env, virtualKey).catch(() => null))?.status === 200))
  })

  await t.test('a PostgreSQL that is killed is started again', async t => {
    process.kill(childOf(first.pid, '/postgres'), 'SIGKILL')
    await first.says('PostgreSQL ended by itself')
    t.ok(await eventually(async () => (await complete(env, virtualKey).catch(() => null))?.status === 200))
  })

  t.equal(await first.end('SIGTERM'), 0, first.output())
  t.notOk(existsSync(join(env.DATA_DIR ?? '', 'agh.lock')))

  // The demo connection follows the control plane to another port.
  const moved = { ...env, CONTROL_PLANE_PORT: String(await freePort()) }
  const second = start(t, moved)
  await second.says(UP)
  t.notMatch(second.output(), /_sk_/, 'secrets are shown once')
  t.equal((await complete(moved, virtualKey)).status, 200)
  t.ok((await get(moved, '/traces', apiKey)).total >= 2)
  t.equal(await second.end('SIGINT'), 0)
})

test('a start that was killed leaves nothing that blocks the next', async t => {
  const env = await place(t)
  const first = start(t, env)
  await first.says(UP)
  const { virtualKey } = secretsOf(first.output())
  await first.end('SIGKILL')
  const second = start(t, env)
  await second.says(UP)
  t.equal((await complete(env, virtualKey)).status, 200)
})

test('secrets that were never shown are shown by the next start', async t => {
  const env = await place(t)
  const first = start(t, env)
  const owner = join(env.DATA_DIR ?? '', 'first-owner.json')
  t.ok(await eventually(() => existsSync(owner)), 'kept while the start goes on')
  await first.end('SIGKILL')
  t.notMatch(first.output(), /Password/)
  const second = start(t, env)
  await second.says(UP)
  const { virtualKey } = secretsOf(second.output())
  t.equal((await complete(env, virtualKey)).status, 200)
  t.notOk(existsSync(owner), 'gone once they are shown')
})

test('a vendor key in the environment becomes a connection and its models', async t => {
  const env: Record<string, string> = { ...(await place(t)), OPENAI_API_KEY: 'sk-openai-test' }
  env.GEMINI_API_KEY = 'gm-test'
  const dataDir = env.DATA_DIR ?? ''
  const run = start(t, env)
  await run.says(UP)
  const { apiKey } = secretsOf(run.output())
  const { data } = await get(env, '/gateway/models', apiKey)
  t.ok(data.length >= 4)
  t.notOk(data.some(model => model.id === 'demo'))
  t.match(data, Array(data.length).fill({ pricing: { inputPerMTok: Number } }))
  const logs = ['proxy', 'control-plane'].map(name =>
    readFileSync(join(dataDir, 'logs', `${name}.log`), 'utf8'),
  )
  t.notMatch(logs.join('') + run.output(), /sk-openai-test|gm-test/)
})

test('what is wrong is said in one line', async t => {
  const cases = async (change: Record<string, string>, said: RegExp) => {
    const run = start(t, { ...(await place(t)), ...change })
    t.equal(await run.ended, 1)
    t.match(run.output(), said)
    t.notMatch(run.output(), /\n\s+at /, 'no stack')
  }
  const taken = createServer().listen(0, '127.0.0.1')
  t.teardown(() => taken.close())
  await sleep(20)
  const { port } = taken.address() as { port: number }
  await cases(
    { PORT: String(port) },
    /PORT holds \d+, which another program .* listens on.*set PORT to another/,
  )
  await cases({ CONTROL_PLANE_PORT: String(port) }, /CONTROL_PLANE_PORT holds/)
  await cases({ PORT: 'http' }, /PORT holds "http"; it may hold a port/)
  await cases({ SIGNUP: 'maybe' }, /SIGNUP holds "maybe"; it may hold first, open or closed/)
  await cases({ AGH_SECRET: 'short' }, /AGH_SECRET holds "5 characters"; it may hold at least 32 bytes/)
  await cases({ DATA_DIR: '/proc/agh' }, /DATA_DIR holds "\/proc\/agh"; agh cannot write/)
  await cases({ HOST: '192.0.2.1' }, /HOST holds "192.0.2.1", which is not an address of this machine/)
  const unreachable = 'postgres://me:secret@127.0.0.1:1/agh'
  await cases(
    { DATABASE_URL: unreachable },
    /PostgreSQL at postgres:\/\/\*\*\*@127.0.0.1:1\/agh cannot be used/,
  )
})

test('the doctor says what is wrong, and ends with 1', async t => {
  const env = await place(t)
  const doctor = (change: Record<string, string> = {}) => {
    const { status, stdout } = spawnSync(process.execPath, [entry('doctor')], {
      env: { ...env, ...change },
      encoding: 'utf8',
    })
    return { status, stdout }
  }
  t.match(doctor(), { status: 0, stdout: /Nothing is wrong/ })
  t.match(doctor({ LEDGER_DOWN: 'perhaps' }), { status: 1, stdout: /LEDGER_DOWN holds "perhaps"/ })
  const refused = doctor({
    REDIS_URL: 'redis://:pw@127.0.0.1:1',
    DATABASE_URL: 'postgres://a:pw@127.0.0.1:1/x',
  })
  t.match(refused, { status: 1, stdout: /Redis at redis:\/\/\*\*\*@127.0.0.1:1 cannot be reached/ })
  t.notMatch(refused.stdout, /pw/)
  t.match(doctor({ SMTP_URL: 'smtp://me:p@ss@127.0.0.1:1' }), {
    status: 1,
    stdout: /The mail server at smtp:\/\/\*\*\*@127.0.0.1:1 cannot be used: .*ECONNREFUSED/,
  })

  const run = start(t, env)
  await run.says(UP)
  t.match(doctor(), { status: 0, stdout: /The proxy runs at .* and is ready[\s\S]*All 1 provider keys open/ })
  t.match(doctor({ AGH_SECRET: 'x'.repeat(32) }), { status: 1, stdout: /provider keys do not open/ })
})

/** The process below `parent` whose command line holds `text`. */
function childOf(parent: number, text: string): number {
  const { stdout } = spawnSync('ps', ['-eo', 'pid=,ppid=,args='], { encoding: 'utf8' })
  const line = stdout.split('\n').find(each => {
    const [, ppid, ...args] = each.trim().split(/\s+/)
    return Number(ppid) === parent && args.join(' ').includes(text)
  })
  return Number(line?.trim().split(/\s+/)[0])
}
