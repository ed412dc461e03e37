import type { z } from 'zod'
import type { executionError } from '../../shared/contract/tool-execution.js'
import { cleanText } from '../traces/payload.js'

/** What went wrong with an execution, as its answer and its span say it. */
export type ToolFailure = z.output<typeof executionError>

/** UTF-16 units. A declared slug is a filter value and part of an index key. */
const CODE_MAX = 128
const MESSAGE_MAX = 1_000

export function failure(type: ToolFailure['type'], code: string | null, message: string): ToolFailure {
  return { type, code: code === null ? null : fit(code, CODE_MAX), message: fit(message, MESSAGE_MAX) }
}

/** What PostgreSQL takes: no NUL, no half of a surrogate pair. */
const fit = (text: string, most: number) => cleanText(text.slice(0, most))
