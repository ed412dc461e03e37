import { parentPort, workerData } from 'node:worker_threads'
import type { Job, Outcome, Ready, Reply, WorkerSettings } from './messages.js'
import { checkSchema, validate } from './schema-engine.js'
import { ThreadClock, thisThread } from './thread-clock.js'
import { TransformEngine } from './transform-engine.js'

/** The entry of a worker thread: says that it is ready, then does one job at a time until it is ended from outside. */

const { interruptMs } = workerData as WorkerSettings
const engine = await TransformEngine.load()
const thread = thisThread()

function outcomeOf(job: Job): Outcome {
  switch (job.kind) {
    case 'check-transform':
      return engine.run(job.source, null, new ThreadClock(interruptMs, thread))
    case 'run-transform':
      return engine.run(job.source, job.input, new ThreadClock(interruptMs, thread))
    case 'check-schema':
      return checkSchema(job.schema)
    case 'validate':
      return validate(job.schema, job.value)
  }
}

parentPort?.on('message', (job: Job) => {
  const reply: Reply = { outcome: outcomeOf(job), isSpent: engine.isSpent }
  parentPort?.postMessage(reply)
})
const ready: Ready = { thread }
parentPort?.postMessage(ready)
