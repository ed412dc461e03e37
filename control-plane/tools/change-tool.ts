import { isUuid } from '../../shared/contract/common.js'
import { AppError, notFound } from '../../shared/errors/app-error.js'
import type { Principal } from '../access/principal.js'
import { record } from '../audit/record.js'
import type { Sql } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { isUniqueViolation } from '../gateway/constraints.js'
import { changeTeam } from '../gateway/publish.js'
import {
  findTool,
  insertTool,
  lockTool,
  type StoredTool,
  softDeleteTool,
  type ToolRow,
  updateToolRow,
} from './queries.js'

type Author = Pick<Principal, 'teamId' | 'userId'>

/** @throws AppError TOOL_NAME_TAKEN when an active tool of the team has the name. */
export async function addTool(
  deps: Deps,
  author: Author,
  tool: { id: string; name: string; description: string | null },
): Promise<ToolRow> {
  const nowMs = deps.now()
  const { teamId, userId } = author
  return named(tool.name, () =>
    changeTeam(deps, teamId, async tx => {
      await insertTool(tx, { ...tool, teamId, createdBy: userId, createdAt: new Date(nowMs) })
      const metadata = { toolId: tool.id, name: tool.name }
      await record(tx, author, nowMs, 'tool_created', metadata, { toolId: tool.id })
      return requireTool(tx, teamId, tool.id)
    }),
  )
}

/** Fields left out stay. @throws AppError NOT_FOUND `Tool not found.`; TOOL_NAME_TAKEN. */
export async function changeTool(
  deps: Deps,
  author: Author,
  id: string,
  patch: { name?: string | undefined; description?: string | null | undefined },
): Promise<ToolRow> {
  const { teamId } = author
  return named(patch.name ?? '', () =>
    changeTeam(deps, teamId, async tx => {
      const stored = await lockedTool(tx, teamId, id)
      const name = patch.name ?? stored.name
      const description = patch.description === undefined ? stored.description : patch.description
      await updateToolRow(tx, teamId, { id: stored.id, name, description })
      if (name !== stored.name) {
        const metadata = { toolId: stored.id, from: stored.name, to: name }
        await record(tx, author, deps.now(), 'tool_renamed', metadata, { toolId: stored.id })
      }
      return requireTool(tx, teamId, stored.id)
    }),
  )
}

/** Hides the tool and releases its name; versions and aliases are kept. @throws AppError NOT_FOUND. */
export async function removeTool(deps: Deps, author: Author, id: string): Promise<void> {
  await changeTeam(deps, author.teamId, async tx => {
    const stored = await lockedTool(tx, author.teamId, id)
    const nowMs = deps.now()
    await softDeleteTool(tx, author.teamId, stored.id, new Date(nowMs))
    const metadata = { toolId: stored.id, name: stored.name }
    await record(tx, author, nowMs, 'tool_deleted', metadata, { toolId: stored.id })
  })
}

/** An active tool, read. @throws AppError NOT_FOUND `Tool not found.`: missing, deleted or another team's. */
export async function requireTool(sql: Sql, teamId: string, id: string): Promise<ToolRow> {
  const row = isUuid(id) ? await findTool(sql, teamId, id) : null
  if (row === null) throw notFound('Tool')
  return row
}

/** An active tool whose versions and aliases nobody else writes until the transaction ends. @throws as requireTool. */
export async function lockedTool(tx: Sql, teamId: string, id: string): Promise<StoredTool> {
  const row = isUuid(id) ? await lockTool(tx, teamId, id) : null
  if (row === null) throw notFound('Tool')
  return row
}

async function named<T>(name: string, write: () => Promise<T>): Promise<T> {
  try {
    return await write()
  } catch (error) {
    if (!isUniqueViolation(error)) throw error
    throw new AppError('TOOL_NAME_TAKEN', `A tool named '${name}' already exists.`)
  }
}
