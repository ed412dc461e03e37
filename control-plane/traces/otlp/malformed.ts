import { AppError } from '../../../shared/errors/app-error.js'

/** Spec 2, POST /traces/otlp, errors: exporters do not send such a batch again. */
export const malformed = (detail: string, cause?: unknown): AppError =>
  new AppError('VALIDATION_ERROR', `Malformed OTLP request: ${detail}`, { cause })
