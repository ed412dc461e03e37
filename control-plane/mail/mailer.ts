import { randomUUID } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import type { Logger } from '../../shared/log/logger.js'
import type { Config } from '../config.js'

/** One message; plain text always, HTML when it helps. */
export interface Mail {
  to: string
  subject: string
  text: string
  html?: string
  headers?: Record<string, string>
}

export interface Mailer {
  /** Resolves when the message was handed over: to the SMTP server, or to a file. Throws when it was not. */
  send(mail: Mail): Promise<void>
  close(): void
}

/** The defaults wait for minutes; a job that failed is tried again anyway. */
const deadlines = { connectionTimeout: 5_000, greetingTimeout: 5_000, socketTimeout: 20_000 }

/** SMTP when SMTP_URL is set, else `.eml` files under DATA_DIR/outbox (spec 4, section 1). */
export function createMailer(
  config: Pick<Config, 'SMTP_URL' | 'MAIL_FROM' | 'DATA_DIR'>,
  log: Logger,
): Mailer {
  const { SMTP_URL: url, MAIL_FROM: from } = config
  return url === undefined
    ? fileMailer(join(config.DATA_DIR, 'outbox'), from, log)
    : smtpMailer(url, from, log)
}

function smtpMailer(url: string, from: string, log: Logger): Mailer {
  const transport = createTransport({ url, pool: true, maxConnections: 2, ...deadlines }, { from })
  return {
    async send(mail) {
      const { messageId } = await transport.sendMail(mail)
      log.info({ to: mail.to, subject: mail.subject, messageId }, 'mail sent')
    },
    close: () => transport.close(),
  }
}

function fileMailer(folder: string, from: string, log: Logger): Mailer {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: 'unix' }, { from })
  return {
    async send(mail) {
      const { message } = await transport.sendMail(mail)
      const name = `${new Date().toISOString().replace(/[:.]/g, '-')}-${randomUUID().slice(0, 8)}.eml`
      const path = join(folder, name)
      await mkdir(folder, { recursive: true })
      // Readable by the owner alone: it may hold an invite. Renamed when whole: whoever watches sees no half mail.
      await writeFile(`${path}.part`, message as Buffer, { mode: 0o600 })
      await rename(`${path}.part`, path)
      log.info(
        { to: mail.to, subject: mail.subject, path },
        'mail written to the outbox; SMTP_URL is not set',
      )
    },
    close: () => transport.close(),
  }
}
