import { periodStartMs } from '../../shared/ledger/period.js'
import { usdFromNano } from '../../shared/money/nano.js'
import { inTransaction } from '../db/sql.js'
import type { Deps } from '../deps.js'
import { type Notice, usdWords } from './compose.js'
import {
  type DigestTeam,
  insertDigest,
  listDigestTeams,
  listTopModels,
  sumUsage,
  type Usage,
} from './digest-queries.js'
import { notify } from './notify.js'

type DigestDeps = Pick<Deps, 'sql' | 'config' | 'jobs' | 'now' | 'log'>

const WEEK_MS = 7 * 86_400_000
const PAGE = 200
const TOP_MODELS = 5

/**
 * Mails owners and admins what their team used in the week that ended last Sunday, once a team and week. A team without
 * calls gets none.
 *
 * @throws what kept a team from getting its own, after all others have theirs: the next attempt is for the rest.
 */
export async function sendWeeklyDigests(deps: DigestDeps): Promise<void> {
  const endMs = periodStartMs('week', deps.now()) ?? 0
  let after: string | null = null
  let failure: unknown = null
  for (;;) {
    const week = { start: dayOf(endMs - WEEK_MS), end: dayOf(endMs) }
    const page: DigestTeam[] = await listDigestTeams(deps.sql, week, after, PAGE)
    for (const team of page) {
      try {
        await sendDigest(deps, team, endMs)
      } catch (error) {
        deps.log.error({ err: error, teamId: team.teamId }, 'a weekly digest could not be made')
        failure = error
      }
    }
    if (page.length < PAGE) break
    after = page.at(-1)?.teamId ?? null
  }
  if (failure !== null) throw failure
}

async function sendDigest(deps: DigestDeps, { teamId, teamName }: DigestTeam, endMs: number): Promise<void> {
  const startMs = endMs - WEEK_MS
  await inTransaction(deps.sql, async tx => {
    if (!(await insertDigest(tx, teamId, dayOf(startMs), new Date(deps.now())))) return
    const used = await sumUsage(tx, teamId, dayOf(startMs), dayOf(endMs))
    const before = await sumUsage(tx, teamId, dayOf(startMs - WEEK_MS), dayOf(startMs))
    const models = await listTopModels(tx, teamId, new Date(startMs), new Date(endMs), TOP_MODELS)
    const notice: Notice = {
      subject: `${teamName} on agh: the week of ${dayOf(startMs)}`,
      paragraphs: [`What the team "${teamName}" used from ${dayOf(startMs)} to ${dayOf(endMs - 1)} (UTC):`],
      facts: [
        ['Calls', used.requests.toLocaleString('en-US')],
        ['Cost', cost(used)],
        ['The week before', `${calls(before)}, ${cost(before)}`],
        ...models.map(model => [`Model ${model.model}`, `${calls(model)}, ${cost(model)}`] as const),
      ],
      oneClick: true,
    }
    await notify(deps, tx, teamId, 'weekly_digest', 'managers', notice)
  })
}

const dayOf = (ms: number): string => new Date(ms).toISOString().slice(0, 10)

const cost = (usage: Usage): string => usdWords(usdFromNano(usage.costNano))

const calls = ({ requests }: Usage): string =>
  `${requests.toLocaleString('en-US')} ${requests === 1 ? 'call' : 'calls'}`
