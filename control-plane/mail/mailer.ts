/** One message; plain text always, HTML when it helps. */
export interface Mail {
  to: string
  subject: string
  text: string
  html?: string
  headers?: Record<string, string>
}

export interface Mailer {
  /** Resolves when the message was handed over: to the SMTP server, or to a file. */
  send(mail: Mail): Promise<void>
  close(): void
}
