import { closeSync, openSync, readSync, statSync } from 'node:fs'
import { connectSql } from '../../control-plane/db/sql.js'

/** What PostgreSQL says it did for one request: the statements' EXPLAIN ANALYZE together. */
export interface Work {
  statements: number
  /** Rows that scans looked at, those included that a filter threw away. */
  rowsRead: number
  /** Pages of 8 KB, from the cache or not. */
  pages: number
}

/** Server settings for a log of plans; nothing is logged until `logPlans`. */
export const planSettings = [
  'session_preload_libraries=auto_explain',
  'auto_explain.log_min_duration=-1',
  'auto_explain.log_analyze=on',
  'auto_explain.log_buffers=on',
  'auto_explain.log_timing=off',
  'auto_explain.log_format=json',
  'auto_explain.log_parameter_max_length=0',
]

/** For connections that are made from now on. */
export async function logPlans(databaseUrl: string, on: boolean): Promise<void> {
  const sql = connectSql(databaseUrl, { max: 1, deadlineMs: 10_000 })
  const name = new URL(databaseUrl).pathname.slice(1)
  const setting = `alter database "${name}" set auto_explain.log_min_duration = ${on ? 0 : -1}`
  await sql.unsafe(setting)
  await sql.end({ timeout: 5 })
}

/** What the statements of one request did, out of the server's log. Asked again when another backend wrote in between. */
export async function workOf(logFile: string, request: () => Promise<unknown>): Promise<Work> {
  for (let attempt = 1; ; attempt++) {
    const from = statSync(logFile).size
    await request()
    try {
      return sumOf(readFrom(logFile, from))
    } catch (error) {
      if (!(error instanceof SyntaxError) || attempt === 5) throw error
    }
  }
}

function sumOf(log: string): Work {
  const work: Work = { statements: 0, rowsRead: 0, pages: 0 }
  for (const [, plan = ''] of log.matchAll(/ plan:\n((?:\t.*(?:\n|$))+)/g)) {
    const { Plan: top, 'Query Text': statement } = JSON.parse(plan.replace(/^\t/gm, '')) as Explained
    if (isAside(statement)) continue
    work.statements += 1
    work.rowsRead += rowsReadBy(top)
    work.pages += (top['Shared Hit Blocks'] ?? 0) + (top['Shared Read Blocks'] ?? 0)
  }
  return work
}

/** The check of the key and the job queue's polling are the same for every request. */
const isAside = (statement: string) => /graphile_worker|from api_keys|_jobs|ledger_/.test(statement)

interface PlanNode {
  'Node Type': string
  'Actual Rows'?: number
  'Actual Loops'?: number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: PlanNode[]
}
interface Explained {
  'Query Text': string
  Plan: PlanNode
}

const scans = new Set(['Seq Scan', 'Index Scan', 'Index Only Scan', 'Bitmap Heap Scan', 'Tid Scan'])

function rowsReadBy(node: PlanNode): number {
  const below = (node.Plans ?? []).reduce((sum, child) => sum + rowsReadBy(child), 0)
  if (!scans.has(node['Node Type'])) return below
  const each =
    (node['Actual Rows'] ?? 0) +
    (node['Rows Removed by Filter'] ?? 0) +
    (node['Rows Removed by Index Recheck'] ?? 0)
  return below + each * (node['Actual Loops'] ?? 1)
}

function readFrom(file: string, from: number): string {
  const bytes = Buffer.alloc(statSync(file).size - from)
  const handle = openSync(file, 'r')
  readSync(handle, bytes, 0, bytes.length, from)
  closeSync(handle)
  return bytes.toString('utf8')
}
