import { test } from 'tap'
import { PostgresLedger } from '../../../shared/ledger/postgres-ledger.js'
import { PostgresStore } from '../../../shared/ledger/postgres-store.js'
import { testDatabase } from '../../support/postgres.js'
import { ledgerConformance } from './conformance.js'
import { connected, PATIENT_MS, silent } from './subject.js'

test('the ledger on PostgreSQL', async t => {
  const { url } = await testDatabase(t)
  const store = new PostgresStore(url, silent, PATIENT_MS)
  t.teardown(() => store.close())
  const reach = { databaseUrl: url, deadlineMs: PATIENT_MS }
  ledgerConformance(t, {
    reach,
    connect: (t, tuning) => connected(t, reach, tuning),
    at: tuning => new PostgresLedger(store, tuning),
  })
})
