import type { Mail } from '../mail/mailer.js'
import { oneLine } from '../notifications/compose.js'

/** The mail with the link. Plain text: there is nothing in it that needs more. */
export const inviteMail = (invite: {
  email: string
  role: string
  url: string
  teamName: string
  expiresAt: Date
}): Mail => ({
  to: invite.email,
  subject: oneLine(`You are invited to ${invite.teamName} on agh`),
  text: [
    // A name of several lines would be text of the team's own in a mail of agh's, a link to anywhere among it.
    oneLine(`You are invited to join the team "${invite.teamName}" as ${invite.role}.`),
    '',
    `Accept: ${invite.url}`,
    '',
    `The link works once, until ${invite.expiresAt.toISOString().slice(0, 16).replace('T', ' ')} UTC.`,
    'If you did not expect this mail, ignore it: nothing happens.',
    '',
  ].join('\n'),
})
