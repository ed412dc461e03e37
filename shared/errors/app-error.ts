import { type ErrorCode, errorStatus } from './catalogue.js'

interface AppErrorOptions {
  /** Logged, never sent. */
  cause?: unknown
  /** Extra response headers, for example `retry-after`. Lower-case names. */
  headers?: Record<string, string>
  /** Overrides the code's own status; only a forwarded provider 4xx needs it. */
  status?: number
}

/** The one error class. `message` is public; `cause` is logged and never sent. */
export class AppError extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly headers: Record<string, string>

  constructor(code: ErrorCode, message: string, options: AppErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = 'AppError'
    this.code = code
    this.status = options.status ?? errorStatus[code]
    this.headers = options.headers ?? {}
  }
}

/** A missing resource and another team's resource are the same answer: `Prompt not found.` */
export const notFound = (what: string) => new AppError('NOT_FOUND', `${what} not found.`)

export const validation = (message: string) => new AppError('VALIDATION_ERROR', message)

export const unauthorized = (message = 'Authentication required.') => new AppError('UNAUTHORIZED', message)

export const forbidden = (message = 'Insufficient role for this action.') =>
  new AppError('FORBIDDEN', message)

export const conflict = (message: string) => new AppError('CONFLICT', message)

/** @param retryAfterSeconds sent as `Retry-After`, at least 1. */
export const unavailable = (message: string, retryAfterSeconds = 1, cause?: unknown) =>
  new AppError('UNAVAILABLE', message, {
    cause,
    headers: { 'retry-after': String(Math.max(1, retryAfterSeconds)) },
  })
