import { spawnSync } from 'node:child_process'
import { test } from 'tap'

const logged = (level: string, lines: string): Record<string, unknown>[] => {
  const url = new URL('../../../shared/log/logger.js', import.meta.url).href
  const script = `import { createLogger } from '${url}'; const log = createLogger('proxy', '${level}'); ${lines}`
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' })
  return stdout
    .split('\n')
    .filter(line => line !== '')
    .map(line => JSON.parse(line))
}

test('logs are one JSON object a line, with the program’s name and ISO times, from LOG_LEVEL up', async t => {
  const lines = logged('warn', `log.info('quiet'); log.warn({ teamId: 't' }, 'said')`)
  t.equal(lines.length, 1)
  t.match(lines[0], { name: 'proxy', msg: 'said', teamId: 't', time: /^\d{4}-\d\d-\d\dT/ })
})

test('a key, a prompt or a completion never reaches a log', async t => {
  const canary = 'CANARY-sk-123'
  const fields = `['authorization','cookie','password','apiKey','key','token','prompt','messages','input','output']`
  const lines = logged(
    'info',
    `for (const field of ${fields}) {
      log.info({ [field]: '${canary}', inner: { [field]: '${canary}', inner: { [field]: '${canary}' } } }, 'x')
    }
    log.info({ headers: { 'set-cookie': '${canary}', 'x-agh-internal': '${canary}' } }, 'x')`,
  )
  t.equal(lines.length, 11)
  t.notOk(JSON.stringify(lines).includes(canary))
})

test('an error is logged with its stack and its cause', async t => {
  const [line] = logged(
    'info',
    `log.error({ error: new Error('outer', { cause: new Error('inner') }) }, 'failed')`,
  )
  t.match(line, { error: { message: /outer/, stack: /inner/ } })
})
