import { AppError } from './app-error.js'

export interface ErrorReply {
  status: number
  headers: Record<string, string>
  body: { error: { code: string; message: string } }
}

/** UTF-16 units. Messages repeat names that a caller sent, of any length. */
const MOST_MESSAGE = 4_000

/**
 * Any thrown value to what the client sees (spec 1, conventions; spec 4, section 2). What is not an AppError is
 * answered as INTERNAL_ERROR with the request id and nothing else; log the original before you send this.
 */
export function errorReply(error: unknown, requestId: string): ErrorReply {
  if (error instanceof AppError) {
    return {
      status: error.status,
      headers: error.headers,
      body: { error: { code: error.code, message: shortened(error.message) } },
    }
  }
  const message = `Internal error. Request id: ${requestId}.`
  return { status: 500, headers: {}, body: { error: { code: 'INTERNAL_ERROR', message } } }
}

/** JSON.stringify writes half of a character that was cut in two as an escape: still JSON, and only in such a message. */
function shortened(message: string): string {
  if (message.length <= MOST_MESSAGE) return message
  return `${message.slice(0, MOST_MESSAGE / 2)} … ${message.slice(-MOST_MESSAGE / 2)}`
}
