/** The fake provider as a process of its own: `node fake-provider-main.js [--port 0] [--bill file] [--always "fault"]`. */
import { parseArgs } from 'node:util'
import { parseFault } from './fake-fault.js'
import { startFakeProvider } from './fake-provider.js'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    bill: { type: 'string' },
    always: { type: 'string' },
    /** Nothing is kept in memory: for load. */
    lean: { type: 'boolean', default: false },
  },
})

const fake = await startFakeProvider({
  port: Number(values.port),
  host: values.host,
  keep: !values.lean,
  ...(values.bill !== undefined && { billFile: values.bill }),
})
if (values.always !== undefined) fake.always(parseFault(values.always))
console.log(JSON.stringify({ port: fake.port }))
process.once('SIGTERM', () => void fake.stop().then(() => process.exit(0)))
