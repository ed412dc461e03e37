import { randomUUID } from 'node:crypto'
import type { Test } from 'tap'
import {
  createFeedback,
  listFeedback,
  listTraceFeedback,
  summarizeFeedback,
  updateFeedback,
} from '../../../shared/contract/feedback.js'
import { callRecord, ship } from '../../support/call-records.js'
import { type ControlPlane, type Credential, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'

export const NOW = Date.parse('2026-11-21T12:00:00.000Z')
export const DAY_MS = 86_400_000

type Parts = Parameters<typeof callRecord>[1]
type PostBody = Parameters<typeof post>[2]

/** A control plane whose clock moves a second with every post, two teams, and short forms of the endpoints. */
export async function feedbackScene(t: Test) {
  const clock = { ms: NOW }
  const cp = await startControlPlane(t, { now: () => clock.ms })
  const [ours, theirs] = [await team(cp), await team(cp)]
  const author = ours.editor.personalKey
  const posted = async (traceId: string, body: PostBody, as: Credential = author) => {
    clock.ms += 1_000
    const answer = await post(cp, traceId, body, as)
    if (answer.error !== null) throw new Error(answer.error.message)
    return answer.body
  }
  const feed = (query: Record<string, string | string[]> = {}, as: Credential = ours.viewer.personalKey) =>
    cp.call(listFeedback, { query: query as never, as })
  /** Ids that the feed finds, in order. */
  const found = async (query?: Record<string, string | string[]>) => {
    const { error, body } = await feed(query)
    if (error !== null) throw new Error(error.message)
    return body.data.map(row => row.id)
  }
  return {
    cp,
    clock,
    ours,
    theirs,
    author,
    feed,
    found,
    posted,
    post: (traceId: string, body: PostBody, as: Credential = author) => post(cp, traceId, body, as),
    edit: (row: { traceId: string; id: string }, body: object, as: Credential = author) =>
      cp.call(updateFeedback, { params: { id: row.traceId, feedbackId: row.id }, body: body as never, as }),
    ofTrace: (id: string, as: Credential = author) => cp.call(listTraceFeedback, { params: { id }, as }),
    summary: (query: Record<string, string> = {}, as: Credential = author) =>
      cp.call(summarizeFeedback, { query: query as never, as }),
    trace: (parts?: Parts, teamId = ours.teamId) => trace(cp, teamId, parts),
  }
}

const post = (cp: ControlPlane, id: string, body: object, as: Credential) =>
  cp.call(createFeedback, { params: { id }, body: body as never, as })

/** Stores a gateway call, in a trace of its own unless the parts name one. */
async function trace(cp: ControlPlane, teamId: string, parts: Parts = {}) {
  const call = callRecord(teamId, { ...parts, charge: { admittedAtMs: cp.deps.now(), ...parts.charge } })
  const { status, body } = await ship(cp, [call])
  if (status !== 200 || body.accepted !== 1) throw new Error('the call was not stored')
  return { id: call.span.trace.id, spanId: call.span.spanId }
}

/** A prompt with one version for each number. @returns the versions' ids. */
export async function promptVersions(
  cp: ControlPlane,
  teamId: string,
  name: string,
  numbers: readonly number[],
): Promise<{ promptId: string; versionIds: string[] }> {
  const { sql } = cp.deps
  const [promptId, createdAt] = [randomUUID(), new Date(NOW)]
  await sql`insert into prompts ${sql({ teamId, id: promptId, name, createdAt })}`
  const versionIds: string[] = []
  for (const versionNumber of numbers) {
    const id = randomUUID()
    const row = { teamId, id, promptId, versionNumber, messages: '[]', variables: [], createdAt }
    await sql`insert into prompt_versions ${sql(row)}`
    versionIds.push(id)
  }
  return { promptId, versionIds }
}
