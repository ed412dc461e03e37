import { test } from 'tap'
import { adapters } from '../../../proxy/providers/index.js'
import { providers } from '../../../shared/contract/common.js'
import { adapterConformance } from './conformance.js'

for (const kind of providers) test(kind, async t => adapterConformance(t, adapters[kind]))
