import type { Test } from 'tap'
import { clientsSuite } from './clients.js'
import type { Engine } from './edge.js'
import { parsingSuite } from './parsing.js'
import { repliesSuite } from './replies.js'

/** What the proxy's HTTP edge promises, on either engine. */
export function edgeSuite(t: Test, engine: Engine): void {
  parsingSuite(t, engine)
  repliesSuite(t, engine)
  clientsSuite(t, engine)
}
