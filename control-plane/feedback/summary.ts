import type { FeedbackBucket, FeedbackGroup } from '../../shared/contract/feedback.js'
import type { Sql } from '../db/sql.js'
import {
  countFeedbackByModel,
  countFeedbackByPromptVersion,
  type VersionFeedbackCount,
  type Window,
} from './summary-queries.js'

/** Feedback of a window by model or prompt version, ordered by label (spec 2, feedback summary bucket). */
export async function feedbackBuckets(
  sql: Sql,
  teamId: string,
  groupBy: FeedbackGroup,
  window: Window,
): Promise<FeedbackBucket[]> {
  if (groupBy === 'model') {
    const counts = await countFeedbackByModel(sql, teamId, window)
    return counts.map(count => ({ ...count, label: count.key, promptId: null }))
  }
  const counts = await countFeedbackByPromptVersion(sql, teamId, window)
  return counts.map(versionBucket).sort(byLabel)
}

function versionBucket(counted: VersionFeedbackCount): FeedbackBucket {
  const { promptName, versionNumber, ...count } = counted
  const isKnown = promptName !== null && versionNumber !== null
  return { ...count, label: isKnown ? `${promptName} v${versionNumber}` : count.key }
}

/** By code unit, as PostgreSQL's "C" orders models; prompts may share a name, so the key settles the rest. */
function byLabel(a: FeedbackBucket, b: FeedbackBucket): number {
  if (a.label === b.label) return a.key < b.key ? -1 : 1
  return a.label < b.label ? -1 : 1
}
