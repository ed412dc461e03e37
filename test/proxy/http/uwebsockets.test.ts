import t from 'tap'
import { engines } from '../../support/engines.js'
import { edgeSuite } from './suite.js'

if (engines.includes('uwebsockets')) edgeSuite(t, 'uwebsockets')
else t.plan(0, 'uWebSockets.js has no binary for this machine')
