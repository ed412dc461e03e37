import { connect, type Socket } from 'node:net'
import type { Test } from 'tap'
import type { Handler, HttpServer, ListenOptions } from '../../../proxy/http/exchange.js'
import { listen } from '../../../proxy/http/listen.js'

export type Engine = 'uwebsockets' | 'node'

export interface Edge extends HttpServer {
  /** What handlers and listeners threw. */
  faults: unknown[]
}

/** A server on a free port, closed with the test. */
export async function edge(
  t: Test,
  engine: Engine,
  handler: Handler,
  options: Partial<ListenOptions> = {},
): Promise<Edge> {
  const faults: unknown[] = []
  const server = await listen(
    { host: '127.0.0.1', port: 0, shared: false, onFault: error => faults.push(error), ...options, engine },
    handler,
  )
  t.teardown(() => server.close())
  // The getter `live` must stay one.
  return Object.defineProperties({ faults } as Edge, Object.getOwnPropertyDescriptors(server))
}

export const pause = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

export async function until(isSo: () => boolean, limitMs = 5_000): Promise<boolean> {
  for (const end = Date.now() + limitMs; Date.now() < end; await pause(5)) if (isSo()) return true
  return isSo()
}

/** A client that sends bytes and does not read before it is told to. */
export async function silentClient(t: Test, port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, '127.0.0.1')
  socket.pause()
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  await new Promise<void>(resolve => socket.once('connect', () => resolve()))
  socket.write(bytes, 'latin1')
  return socket
}

export const getRequest = (path: string, headers = '') => `GET ${path} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`

export const postRequest = (path: string, body: string, headers = '') =>
  `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: ${body.length}\r\n${headers}\r\n${body}`
