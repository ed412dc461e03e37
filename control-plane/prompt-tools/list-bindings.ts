import type { Result } from '../../shared/contract/endpoint.js'
import type { listPromptTools, setAliasPromptTool } from '../../shared/contract/prompt-tools.js'
import type { Sql } from '../db/sql.js'
import { listPromptAliasRows } from '../prompts/queries.js'
import { type BindingRow, DEFAULT_ALIAS, listBindingRows } from './queries.js'
import { isOff, resolveRows } from './resolve-bindings.js'

type ShownBinding = Result<typeof setAliasPromptTool>

/** A prompt's bindings as people see them; those of deleted tools are absent, as the tools are. */
export async function listBindings(
  sql: Sql,
  teamId: string,
  promptId: string,
): Promise<Result<typeof listPromptTools>['data']> {
  const [aliases, all] = await Promise.all([
    listPromptAliasRows(sql, teamId, promptId),
    listBindingRows(sql, teamId, promptId),
  ])
  const rows = all.filter(row => !row.isToolDeleted)
  const resolved = await resolveRows(sql, teamId, rows)
  const byAlias = new Map<string, ShownBinding[]>()
  for (const [at, row] of rows.entries()) {
    const shown = byAlias.get(row.promptAlias) ?? []
    byAlias.set(row.promptAlias, shown)
    shown.push(shownBinding(row, resolved[at]?.versionNumber ?? null))
  }
  const served = new Map(aliases.map(row => [row.alias, row.versionNumber]))
  const names = [...new Set([...served.keys(), ...byAlias.keys()])].filter(name => name !== DEFAULT_ALIAS)
  return {
    default: byAlias.get(DEFAULT_ALIAS) ?? [],
    aliases: names.sort(byRank).map(alias => ({
      alias,
      versionNumber: served.get(alias) ?? null,
      customised: byAlias.has(alias),
      bindings: byAlias.get(alias) ?? [],
    })),
  }
}

export const shownBinding = (row: BindingRow, resolvedVersionNumber: number | null): ShownBinding => ({
  toolId: row.toolId,
  toolName: row.toolName,
  toolAlias: row.toolAlias,
  pinnedVersionNumber: row.pinnedVersionNumber,
  off: isOff(row),
  resolvedVersionNumber,
  position: row.position,
})

const ranks = ['production', 'staging']

/** Production, staging, then by name. */
function byRank(one: string, other: string): number {
  const [a, b] = [one, other].map(name => (ranks.includes(name) ? ranks.indexOf(name) : ranks.length))
  return (a ?? 0) - (b ?? 0) || (one < other ? -1 : 1)
}
