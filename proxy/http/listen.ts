import type { Handler, HttpServer, ListenOptions } from './exchange.js'
import { loadUwebsockets } from './load-uwebsockets.js'
import { listenOnNode } from './node.js'
import { listenOnUwebsockets } from './uwebsockets.js'

/**
 * Serves HTTP. Without `engine`: uWebSockets.js where its binary loads, else node:http.
 *
 * @throws Error when the port is taken, when `uwebsockets` was asked for and its binary does not load, or when its
 *   binary is not the one that is known (`ForeignBinary`).
 */
export async function listen(
  options: ListenOptions & { engine?: 'uwebsockets' | 'node' },
  handler: Handler,
): Promise<HttpServer> {
  if (options.engine === 'node') return listenOnNode(options, handler)
  const uws = loadUwebsockets()
  if (uws !== null) return listenOnUwebsockets(uws, options, handler)
  if (options.engine === undefined) return listenOnNode(options, handler)
  const { platform, arch, version } = process
  throw new Error(
    `uWebSockets.js has no binary that loads on ${platform} ${arch} with Node ${version}. Use node:http instead.`,
  )
}
