import type { z } from 'zod'
import { AppError } from '../errors/app-error.js'
import { contractMessage } from './messages.js'

/**
 * Checks a value against a contract schema.
 *
 * @throws AppError VALIDATION_ERROR with the first problem's text, after the field's path and a colon when the
 *   field is nested (spec 4, section 2).
 */
export function parseWith<S extends z.ZodType>(schema: S, value: unknown): z.output<S> {
  const result = schema.safeParse(value, { error: contractMessage })
  if (result.success) return result.data
  throw new AppError('VALIDATION_ERROR', firstProblem(result.error), { cause: result.error })
}

function firstProblem(error: z.ZodError): string {
  const issue = error.issues[0]
  if (issue === undefined) return 'Invalid input'
  return issue.path.length > 1 ? `${issue.path.join('.')}: ${issue.message}` : issue.message
}
