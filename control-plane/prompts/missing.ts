import { isUuid } from '../../shared/contract/common.js'
import { AppError, notFound } from '../../shared/errors/app-error.js'
import type { Sql } from '../db/sql.js'
import { findPromptById, lockPrompt, type PromptRow } from './queries.js'

export const versionNotFound = (versionNumber: number | string) =>
  new AppError('NOT_FOUND', `Version ${versionNumber} not found for this prompt.`)

export const aliasNotFound = (alias: string) =>
  new AppError('NOT_FOUND', `Alias '${alias}' not found for this prompt.`)

/** @throws AppError NOT_FOUND `Prompt not found.`: missing, deleted or another team's. */
export async function requirePrompt(sql: Sql, teamId: string, promptId: string): Promise<PromptRow> {
  return found(isUuid(promptId) ? await findPromptById(sql, teamId, promptId) : null)
}

/** As requirePrompt; other writers of the prompt wait until the transaction ends. */
export async function requireLockedPrompt(tx: Sql, teamId: string, promptId: string): Promise<PromptRow> {
  return found(isUuid(promptId) ? await lockPrompt(tx, teamId, promptId) : null)
}

function found(row: PromptRow | null): PromptRow {
  if (row === null) throw notFound('Prompt')
  return row
}
