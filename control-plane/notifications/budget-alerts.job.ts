import { job } from '../jobs/job.js'
import { alertBudgets } from './budget-alerts.js'

/** Each minute: thresholds that ingestion did not tell, as when a cap was lowered below the spend. */
export const budgetAlertsJob = job('budget_alerts', (_payload, deps) => alertBudgets(deps, null))
