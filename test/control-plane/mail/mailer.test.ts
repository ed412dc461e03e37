import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { createMailer } from '../../../control-plane/mail/mailer.js'
import { createLogger } from '../../../shared/log/logger.js'

const log = createLogger('control-plane', 'silent')
const mail = { to: 'ada@example.com', subject: 'Grüße', text: 'Hello Ada\nhttp://agh.test/invites/x\n' }

test('without SMTP_URL a mail is a whole .eml file in the outbox, readable by its owner alone', async t => {
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'agh-mail-'))
  t.teardown(() => rmSync(DATA_DIR, { recursive: true }))
  const mailer = createMailer({ SMTP_URL: undefined, MAIL_FROM: 'agh <agh@localhost>', DATA_DIR }, log)
  await mailer.send({ ...mail, headers: { 'List-Unsubscribe': '<http://agh.test/u>' } })
  await mailer.send(mail)
  const files = readdirSync(join(DATA_DIR, 'outbox'))
  t.equal(files.length, 2)
  const [name] = files
  t.match(name, /^\d{4}-\d\d-\d\dT.*\.eml$/)
  const path = join(DATA_DIR, 'outbox', name ?? '')
  t.match(readFileSync(path, 'utf8'), /From: agh <agh@localhost>[\s\S]*To: ada@example\.com[\s\S]*Hello Ada/)
  t.equal(statSync(path).mode & 0o777, 0o600)
})

test('a line break in a subject or address does not make a header', async t => {
  const DATA_DIR = mkdtempSync(join(tmpdir(), 'agh-mail-'))
  t.teardown(() => rmSync(DATA_DIR, { recursive: true }))
  const mailer = createMailer({ SMTP_URL: undefined, MAIL_FROM: 'agh@localhost', DATA_DIR }, log)
  await mailer.send({ ...mail, subject: 'Hi\r\nBcc: eve@example.com', to: 'ada@example.com' })
  const [name] = readdirSync(join(DATA_DIR, 'outbox'))
  t.notMatch(readFileSync(join(DATA_DIR, 'outbox', name ?? ''), 'utf8'), /^Bcc:/m)
})

test('with SMTP_URL a mail goes to the server, from MAIL_FROM', async t => {
  const server = await smtpServer(t)
  const mailer = createMailer(
    { SMTP_URL: `smtp://127.0.0.1:${server.port}`, MAIL_FROM: 'agh <agh@example.com>', DATA_DIR: '.' },
    log,
  )
  t.teardown(() => mailer.close())
  await mailer.send(mail)
  t.match(server.received(), /MAIL FROM:<agh@example\.com>[\s\S]*RCPT TO:<ada@example\.com>[\s\S]*Hello Ada/)
})

test('a server that is away fails the send, so that the job is tried again', async t => {
  const config = { SMTP_URL: 'smtp://127.0.0.1:1', MAIL_FROM: 'agh@example.com', DATA_DIR: '.' }
  const mailer = createMailer(config, log)
  t.teardown(() => mailer.close())
  await t.rejects(mailer.send(mail))
})

/** Just enough SMTP to take one message. */
async function smtpServer(t: Test) {
  let text = ''
  const server = createServer(socket => {
    let inData = false
    socket.write('220 test\r\n')
    socket.on('error', () => {})
    socket.on('data', bytes => {
      const given = bytes.toString()
      text += given
      if (inData) {
        if (!given.endsWith('\r\n.\r\n')) return
        inData = false
        socket.write('250 taken\r\n')
      } else if (/^DATA/i.test(given)) {
        inData = true
        socket.write('354 go on\r\n')
      } else socket.write('250 ok\r\n')
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => new Promise(resolve => server.close(resolve)))
  return { port: (server.address() as { port: number }).port, received: () => text }
}
