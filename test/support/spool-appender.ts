/**
 * A process that appends to a spool as fast as it can and reports every record, once it is said to be on disk, on standard
 * output: what a test kills. Arguments: the spool's directory. It ships nothing.
 */
import { writeSync } from 'node:fs'
import { createMetrics } from '../../proxy/metrics.js'
import { openSpool } from '../../proxy/spool/spool.js'
import { createLogger } from '../../shared/log/logger.js'
import { callRecord } from './call-records.js'

const [dir = ''] = process.argv.slice(2)
const spool = openSpool({
  dir,
  maxBytes: 1e9,
  segmentBytes: 1_000_000,
  minFreeBytes: 0,
  ship: () => Promise.reject(new Error('Ships nothing.')),
  metrics: createMetrics(false).spool,
  log: createLogger('spool', 'silent'),
})

setInterval(() => {
  for (let count = 0; count < 20; count++) {
    const record = callRecord('team', {
      span: { payload: { input: 'x'.repeat(1500), output: null, variables: null } },
    })
    const report = () => writeSync(1, `${record.charge.requestId}\n`)
    if (count % 2 === 0) spool.appendWithTurn(record, report)
    else {
      spool.append(record)
      report()
    }
  }
}, 1)
