import { jobList } from '../../../control-plane/jobs/index.js'
import type { Mail } from '../../../control-plane/mail/mailer.js'
import type { ControlPlane } from '../../support/control-plane.js'

/** Sends every mail that is queued, as the job would, and returns them in the order of queueing. */
export async function sendQueued({ deps }: ControlPlane): Promise<Mail[]> {
  const { sql } = deps
  const queued = await sql<{ payload: Mail }[]>`
    select j.payload from graphile_worker._private_jobs j
    join graphile_worker._private_tasks t on t.id = j.task_id
    where t.identifier = 'send_mail' order by j.id`
  await sql`delete from graphile_worker._private_jobs`
  const sent: Mail[] = []
  const send = jobList.find(job => job.name === 'send_mail')
  const mail = { send: async (one: Mail) => void sent.push(one), close: () => {} }
  for (const { payload } of queued) await send?.run(payload, { ...deps, mail })
  return sent
}

/** The link of a mail, as a path on the service's own origin. */
export function unsubscribePath(mail: Mail | undefined): string {
  const found = /http:\/\/agh\.test(\/api\/v1\/email\/unsubscribe\?token=[\w.-]+)/.exec(mail?.text ?? '')
  if (found?.[1] === undefined) throw new Error('The mail has no unsubscribe link.')
  return found[1]
}
