import t from 'tap'
import { edgeSuite } from './suite.js'

edgeSuite(t, 'uwebsockets')
