import type { NotificationCategory } from '../../shared/contract/notifications.js'
import type { Deps } from '../deps.js'
import type { Mail } from '../mail/mailer.js'
import type { Recipient } from './queries.js'
import { unsubscribeUrl } from './unsubscribe-token.js'

/** What a notification says, in plain text: whatever it is made of, it becomes neither HTML nor a header. */
export interface Notice {
  subject: string
  paragraphs: string[]
  /** Label and figure, shown as a table. */
  facts?: (readonly [string, string])[]
  /** Whether the mail is one that mail programs may unsubscribe from by themselves (RFC 8058). */
  oneClick?: boolean
}

/** @param subscription null: the mail cannot be switched off. */
export function compose(
  deps: Pick<Deps, 'config'>,
  notice: Notice,
  to: Recipient,
  subscription: { teamId: string; category: NotificationCategory } | null,
): Mail {
  const { appUrl } = deps.config
  const leave = subscription && unsubscribeUrl(deps, { ...subscription, userId: to.userId })
  return {
    to: to.email,
    subject: oneLine(notice.subject),
    text: textOf(notice, appUrl, leave),
    html: htmlOf(notice, appUrl, leave),
    ...(notice.oneClick === true &&
      leave !== null && {
        headers: {
          'List-Unsubscribe': `<${leave}>`,
          'List-Unsubscribe-Post': 'List-Unsubscribe=One-Click',
        },
      }),
  }
}

/** Names are people's text: no line of theirs may end the line that it stands in. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\u2028\u2029]+/gu, ' ').trim()

/** 0.0042 -> "$0.0042", 12.5 -> "$12.50". */
export const usdWords = (usd: number): string =>
  `$${usd.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: usd < 1 ? 6 : 2 })}`

function textOf({ paragraphs, facts = [] }: Notice, appUrl: string, leave: string | null): string {
  const table = facts.map(([label, figure]) => `${oneLine(label)}: ${oneLine(figure)}`).join('\n')
  const footer = leave === null ? appUrl : `${appUrl}\n\nTo get no more mails of this kind: ${leave}`
  const parts = [...paragraphs.map(oneLine), table, footer]
  return `${parts.filter(part => part !== '').join('\n\n')}\n`
}

function htmlOf({ paragraphs, facts = [] }: Notice, appUrl: string, leave: string | null): string {
  const cells = (row: readonly string[]) => row.map(text => `<td>${escaped(oneLine(text))}</td>`).join('')
  const rows = facts.map(row => `<tr>${cells(row)}</tr>`).join('')
  const link = (url: string, text: string) => `<a href="${escaped(url)}">${escaped(text)}</a>`
  return [
    '<!doctype html><html><body>',
    ...paragraphs.map(text => `<p>${escaped(oneLine(text))}</p>`),
    rows === '' ? '' : `<table>${rows}</table>`,
    `<p>${link(appUrl, appUrl)}</p>`,
    leave === null ? '' : `<p>${link(leave, 'Unsubscribe')} from mails of this kind.</p>`,
    '</body></html>',
  ].join('')
}

const entities: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
}

const escaped = (text: string): string => text.replace(/[&<>"']/g, character => entities[character] ?? '')
