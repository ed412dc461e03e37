import { parentPort, workerData } from 'node:worker_threads'
import type { Job, Outcome, Reply, WorkerSettings } from './messages.js'
import { checkSchema, validate } from './schema-engine.js'
import { TransformEngine } from './transform-engine.js'

/** The entry of a worker thread: says that it is ready, then does one job at a time until it is ended from outside. */

const { interruptMs } = workerData as WorkerSettings
const engine = await TransformEngine.load()

function outcomeOf(job: Job): Outcome {
  switch (job.kind) {
    case 'check-transform':
      return engine.run(job.source, null, interruptMs)
    case 'run-transform':
      return engine.run(job.source, job.input, interruptMs)
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
parentPort?.postMessage('ready')
