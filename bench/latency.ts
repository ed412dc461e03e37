import { Agent } from 'undici'
import { percentile } from './processes.js'
import type { Subject } from './subjects.js'

export interface AddedLatency {
  /** Against the direct call in the same seconds, µs. */
  addedP50Microseconds: number
  addedP99Microseconds: number
}

const body = JSON.stringify({
  model: 'gpt-4o-mini',
  temperature: 0.7,
  max_tokens: 512,
  messages: [
    { role: 'system', content: 'You are a helpful assistant that answers briefly and precisely.' },
    { role: 'user', content: 'Explain in a few sentences how a reverse proxy keeps connections alive.' },
  ],
})

/**
 * Open loop: requests leave at their time whether or not earlier ones are back, alternating between the subject and
 * the direct call, so that what the machine does meanwhile hits both alike.
 */
export async function addedLatency(
  subject: Subject,
  direct: Subject,
  { perSecond, seconds }: { perSecond: number; seconds: number },
): Promise<AddedLatency> {
  const agent = new Agent({ connections: 64, pipelining: 1 })
  const samples = new Map<Subject, number[]>([
    [subject, []],
    [direct, []],
  ])
  const pending: Promise<void>[] = []
  const startedAt = performance.now()
  const total = perSecond * seconds * 2
  for (let sent = 0; sent < total; ) {
    const due = Math.min(total, Math.floor(((performance.now() - startedAt) / 1000) * perSecond * 2))
    for (; sent < due; sent++) {
      const target = sent % 2 === 0 ? subject : direct
      pending.push(timed(agent, target, samples.get(target) ?? []))
    }
    // Sleeping, not spinning: the stores share this process's core, and a loop that never yields it delays their answers.
    await new Promise(resolve => setTimeout(resolve, 1))
  }
  await Promise.all(pending)
  await agent.close()
  const [through, straight] = [samples.get(subject) ?? [], samples.get(direct) ?? []].map(warm)
  return {
    addedP50Microseconds: percentile(through ?? [], 0.5) - percentile(straight ?? [], 0.5),
    addedP99Microseconds: percentile(through ?? [], 0.99) - percentile(straight ?? [], 0.99),
  }
}

/** The first fifth opens connections and compiles code. */
const warm = (values: number[]) => values.slice(Math.floor(values.length / 5))

async function timed(agent: Agent, subject: Subject, into: number[]): Promise<void> {
  const startedAt = performance.now()
  const reply = await agent.request({
    origin: `http://127.0.0.1:${subject.port}`,
    path: subject.path,
    method: 'POST',
    headers: { 'content-type': 'application/json', ...subject.headers },
    body,
  })
  await reply.body.dump()
  into.push((performance.now() - startedAt) * 1000)
}
