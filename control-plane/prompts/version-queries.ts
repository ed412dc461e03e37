import type { PromptMessage } from '../../shared/directory/records.js'
import type { Sql } from '../db/sql.js'

export interface PromptVersionRow {
  id: string
  promptId: string
  versionNumber: number
  variables: string[]
  createdBy: string | null
  createdAt: Date
}

/** A version as it is read; `model` is the bound model's publicName as of now. */
export interface FullPromptVersionRow extends PromptVersionRow {
  messages: PromptMessage[]
  model: string | null
}

const listed = (sql: Sql) => sql`v.id, v.prompt_id, v.version_number, v.variables, v.created_by, v.created_at`
const full = (sql: Sql) => sql`${listed(sql)}, v.messages, m.public_name as model`
const withModel = (sql: Sql) => sql`
  prompt_versions v left join models m on m.team_id = v.team_id and m.id = v.model_id`

/** 0 before the first commit. Lock the prompt first, else two commits take one number. */
export async function findLatestVersionNumber(tx: Sql, teamId: string, promptId: string): Promise<number> {
  const [row] = await tx<{ latest: number }[]>`
    select coalesce(max(version_number), 0) as latest from prompt_versions
    where team_id = ${teamId} and prompt_id = ${promptId}`
  return row?.latest ?? 0
}

/** @param modelId null: no default model. */
export async function insertPromptVersion(
  tx: Sql,
  teamId: string,
  row: Omit<FullPromptVersionRow, 'model'> & { modelId: string | null },
): Promise<void> {
  await tx`
    insert into prompt_versions
      (team_id, id, prompt_id, version_number, messages, variables, model_id, created_by, created_at)
    values (${teamId}, ${row.id}, ${row.promptId}, ${row.versionNumber}, ${JSON.stringify(row.messages)}::text::json,
      ${row.variables}, ${row.modelId}, ${row.createdBy}, ${row.createdAt})`
}

/** The id of the team's model of a publicName. */
export async function findModelId(sql: Sql, teamId: string, publicName: string): Promise<string | null> {
  const [row] = await sql<{ id: string }[]>`
    select id from models where team_id = ${teamId} and public_name = ${publicName}`
  return row?.id ?? null
}

/** One page, newest first, and how many there are in all. */
export async function listPromptVersionRows(
  sql: Sql,
  teamId: string,
  promptId: string,
  page: { limit: number; offset: number },
): Promise<{ rows: PromptVersionRow[]; total: number }> {
  const where = sql`v.team_id = ${teamId} and v.prompt_id = ${promptId}`
  const [rows, counts] = await Promise.all([
    sql<PromptVersionRow[]>`
      select ${listed(sql)} from prompt_versions v where ${where}
      order by v.version_number desc limit ${page.limit} offset ${page.offset}`,
    sql<{ total: number }[]>`select count(*)::int as total from prompt_versions v where ${where}`,
  ])
  return { rows: [...rows], total: counts[0]?.total ?? 0 }
}

export async function findVersionByNumber(
  sql: Sql,
  teamId: string,
  promptId: string,
  versionNumber: number,
): Promise<FullPromptVersionRow | null> {
  const [row] = await sql<FullPromptVersionRow[]>`
    select ${full(sql)} from ${withModel(sql)}
    where v.team_id = ${teamId} and v.prompt_id = ${promptId} and v.version_number = ${versionNumber}`
  return row ?? null
}

export type NamedPromptVersionRow = FullPromptVersionRow & { promptName: string }

/** A version by its own id, of a deleted prompt too. */
export async function findVersionById(
  sql: Sql,
  teamId: string,
  versionId: string,
): Promise<NamedPromptVersionRow | null> {
  const [row] = await sql<NamedPromptVersionRow[]>`
    select ${full(sql)}, p.name as prompt_name
    from ${withModel(sql)} join prompts p on p.team_id = v.team_id and p.id = v.prompt_id
    where v.team_id = ${teamId} and v.id = ${versionId}`
  return row ?? null
}

/** Of the given ids those that are the team's prompt versions, of deleted prompts too. */
export async function listKnownVersionIds(
  sql: Sql,
  teamId: string,
  versionIds: readonly string[],
): Promise<string[]> {
  const rows = await sql<{ id: string }[]>`
    select id from prompt_versions where team_id = ${teamId} and id = any(${[...versionIds]}::uuid[])`
  return rows.map(row => row.id)
}

/** A prompt by name or id; a version by its number, else by the alias that serves it. */
export interface ServedQuestion {
  promptId: string | null
  name: string | null
  alias: string | null
  versionNumber: number | null
}

/** An active prompt; its version is null when the alias or number names none. */
export interface ServedRow {
  promptId: string
  promptName: string
  version: Pick<FullPromptVersionRow, 'id' | 'versionNumber' | 'variables' | 'messages' | 'model'> | null
}

type FlatServedRow = Omit<ServedRow, 'version'> & {
  versionId: string | null
  versionNumber: number
  variables: string[]
  messages: PromptMessage[]
  model: string | null
}

/** Which version a reference means, in one statement. null: no such prompt. */
export async function findServedVersion(
  sql: Sql,
  teamId: string,
  { promptId, name, alias, versionNumber }: ServedQuestion,
): Promise<ServedRow | null> {
  const meant = promptId === null ? sql`name = ${name}` : sql`id = ${promptId}`
  const served =
    versionNumber === null
      ? sql`v.id = (select a.version_id from prompt_aliases a
          where a.team_id = p.team_id and a.prompt_id = p.id and a.alias = ${alias})`
      : sql`v.version_number = ${versionNumber}`
  const [row] = await sql<FlatServedRow[]>`
    select p.id as prompt_id, p.name as prompt_name, v.id as version_id, v.version_number, v.variables, v.messages,
      m.public_name as model
    from (
      select team_id, id, name from prompts
      where team_id = ${teamId} and ${meant} and deleted_at is null
      order by created_at desc, id desc limit 1
    ) p
    left join prompt_versions v on v.team_id = p.team_id and v.prompt_id = p.id and ${served}
    left join models m on m.team_id = v.team_id and m.id = v.model_id`
  if (row === undefined) return null
  const { promptName, versionId, ...version } = row
  const found = versionId === null ? null : servedVersion(versionId, version)
  return { promptId: row.promptId, promptName, version: found }
}

function servedVersion(id: string, row: Omit<FlatServedRow, 'promptName' | 'versionId'>) {
  const { versionNumber, variables, messages, model } = row
  return { id, versionNumber, variables, messages, model }
}
