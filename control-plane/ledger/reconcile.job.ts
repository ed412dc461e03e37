import { job } from '../jobs/job.js'
import { reconcileLedger } from './reconcile.js'

/** Each minute: counters of the ledger that are lower than the charge rows say. */
export const reconcileJob = job('ledger_reconcile', async (_payload, deps) => reconcileLedger(deps))
