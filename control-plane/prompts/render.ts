import type { PromptMessage } from '../../shared/directory/records.js'
import { compilePrompt, renderPrompt } from '../../shared/templates/render.js'
import type { Sql } from '../db/sql.js'
import { type ResolvedPrompt, resolvePrompt, type Served } from './resolve.js'

/** A stored prompt with its templates filled in. */
export type RenderedPrompt = Omit<ResolvedPrompt, 'variables'>

/**
 * What a call with a stored prompt would send (spec 4, section 6).
 *
 * @throws AppError NOT_FOUND; TEMPLATE_RENDER_ERROR `Missing variables: a, b.`, a runtime fault or a limit.
 */
export async function renderStored(
  sql: Sql,
  teamId: string,
  promptId: string,
  input: Served & { variables: Readonly<Record<string, unknown>> },
): Promise<RenderedPrompt> {
  const { variables: _names, ...found } = await resolvePrompt(sql, teamId, { promptId }, input)
  const messages: PromptMessage[] = renderPrompt(compilePrompt(found.messages), input.variables)
  return { ...found, messages }
}
