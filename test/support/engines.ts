import { loadUwebsockets } from '../../proxy/http/load-uwebsockets.js'
import type { Engine } from '../proxy/http/edge.js'

/**
 * The HTTP edges that the proxy is tested on, the usual one first. uWebSockets.js is a binary, which not every machine has
 * one of (README, known limits); in CI it has to be there, so that its tests fail where it is not.
 */
export const engines: readonly [Engine, ...Engine[]] =
  loadUwebsockets() === null && process.env.CI === undefined ? ['node'] : ['uwebsockets', 'node']
