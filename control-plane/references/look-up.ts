import { isUuid } from '../../shared/contract/common.js'
import type {
  MissingRecord,
  PromptRecord,
  ReferencesAnswer,
  ToolDefinition,
  ToolReference,
} from '../../shared/directory/records.js'
import { AppError } from '../../shared/errors/app-error.js'
import { inSnapshot, type Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { isPromptVersionOf, resolvePrompt } from '../prompts/resolve.js'
import { resolveToolReferences } from '../tools/resolve.js'

export interface References {
  teamId: string
  prompt: { name: string; alias: string } | null
  tools: ToolReference[]
  promptVersionId: string | null
}

/**
 * The stored prompt, tools and prompt version that a call names, of one snapshot: a tool that moves while its prompt is
 * read would give a call a pair that never was.
 *
 * A proxy asks after it has loaded the team at the epoch that the ledger announced, so what is committed by now is at
 * least that.
 */
export function lookUp({ sql }: Deps, asked: References): Promise<ReferencesAnswer> {
  const { teamId, prompt, tools, promptVersionId } = asked
  return inSnapshot(sql, async tx => ({
    prompt: prompt === null ? null : await findPrompt(tx, teamId, prompt),
    tools: tools.length === 0 ? [] : await findTools(tx, teamId, tools),
    promptVersionKnown: promptVersionId === null ? null : await isKnown(tx, teamId, promptVersionId),
  }))
}

async function findPrompt(
  tx: Sql,
  teamId: string,
  { name, alias }: { name: string; alias: string },
): Promise<PromptRecord | MissingRecord> {
  try {
    const found = await resolvePrompt(tx, teamId, { name }, { alias })
    const { promptId, versionId, versionNumber, model, messages, tools } = found
    return { promptId, versionId, versionNumber, model, messages, tools }
  } catch (error) {
    if (error instanceof AppError && error.code === 'NOT_FOUND') return { missing: error.message }
    throw error
  }
}

async function findTools(
  tx: Sql,
  teamId: string,
  references: ToolReference[],
): Promise<(ToolDefinition | MissingRecord)[]> {
  const found = await resolveToolReferences(tx, teamId, references)
  return found.map(tool => ('missing' in tool ? tool : tool.definition))
}

const isKnown = async (tx: Sql, teamId: string, versionId: string): Promise<boolean> =>
  isUuid(versionId) && isPromptVersionOf(tx, teamId, versionId)
