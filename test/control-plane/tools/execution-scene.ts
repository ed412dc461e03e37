import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { setSecret } from '../../../shared/contract/secrets.js'
import { updateTraceSettings } from '../../../shared/contract/settings.js'
import { executeTool } from '../../../shared/contract/tool-execution.js'
import { readTrace } from '../../../shared/contract/traces.js'
import { allowedHost } from '../../../shared/network/allowed-hosts.js'
import { type Credential, startControlPlane } from '../../support/control-plane.js'
import { team } from '../../support/seed.js'
import { toolbox } from './scene.js'

export interface SeenRequest {
  method: string
  /** Path and query as they were sent. */
  url: string
  headers: IncomingHttpHeaders
  body: string
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  /** An object is sent as JSON. */
  body?: unknown
  delayMs?: number
}

/** A real HTTP server that tools call. */
export async function startUpstream(t: Test) {
  const requests: SeenRequest[] = []
  const upstream = {
    requests,
    reply: (_request: SeenRequest): Reply => ({ body: { ok: true } }),
    url: '',
    cut: 0,
  }
  const server = createServer((incoming, response) => {
    const chunks: Buffer[] = []
    response.on('close', () => {
      if (!response.writableFinished) upstream.cut++
    })
    incoming.on('data', chunk => chunks.push(chunk))
    incoming.on('end', () => {
      const { method = '', url = '', headers } = incoming
      const seen = { method, url, headers, body: Buffer.concat(chunks).toString() }
      requests.push(seen)
      const { status = 200, headers: sent = {}, body, delayMs = 0 } = upstream.reply(seen)
      const isJson = typeof body === 'object' && body !== null
      response.writeHead(status, { ...(isJson && { 'content-type': 'application/json' }), ...sent })
      setTimeout(() => response.end(isJson ? JSON.stringify(body) : body), delayMs)
    })
  })
  await new Promise<void>(listening => server.listen(0, '127.0.0.1', listening))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  upstream.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return upstream
}

/** A team, an upstream that its executors may reach, and verbs to make and execute tools. */
export async function executionScene(t: Test) {
  const cp = await startControlPlane(t)
  const people = await team(cp)
  const upstream = await startUpstream(t)
  cp.deps.config.TOOL_ALLOW_PRIVATE_HOSTS.push(allowedHost(new URL(upstream.url).host)!)
  const as = people.editor.personalKey
  const tools = toolbox(cp, as)
  let count = 0

  /** Makes a tool whose executor is http, on the upstream. @returns its id. */
  const makeTool = async (
    executor: object = {},
    parametersSchema: object = { type: 'object' },
  ): Promise<string> => {
    const { id } = await tools.create(`tool_${++count}`)
    await commit(id, executor, parametersSchema)
    return id
  }
  const commit = async (id: string, executor: object = {}, parametersSchema: object = { type: 'object' }) => {
    const whole = {
      type: 'http',
      url: `${upstream.url}/call`,
      method: 'GET',
      headers: [],
      query: [],
      ...executor,
    }
    const committed = await tools.commit(id, { parametersSchema, executor: whole })
    if (committed.error !== null) throw new Error(committed.error.message)
    return committed.body
  }
  const execute = (id: string, args: object = {}, more: object = {}, who: Credential = as) =>
    cp.call(executeTool, {
      as: who,
      params: { id },
      body: { arguments: args as Record<string, unknown>, ...more },
    })
  /** Executes and gives the outcome. @throws when the request itself was refused. */
  const outcome = async (id: string, args: object = {}, more: object = {}) => {
    const answer = await execute(id, args, more)
    if (answer.error !== null) throw new Error(`${answer.status} ${answer.error.message}`)
    return answer.body
  }
  const secret = async (name: string, value: string) => {
    const answer = await cp.call(setSecret, {
      as: people.owner.personalKey,
      params: { name },
      body: { value },
    })
    if (answer.error !== null) throw new Error(answer.error.message)
  }
  const trace = async (id: string) => (await cp.call(readTrace, { as, params: { id } })).body
  const capture = (settings: object) =>
    cp.call(updateTraceSettings, { as: people.owner.session, body: settings as never })
  const last = (): SeenRequest => {
    const seen = upstream.requests.at(-1)
    if (seen === undefined) throw new Error('the upstream was not called')
    return seen
  }
  return { cp, people, as, upstream, tools, makeTool, commit, execute, outcome, secret, trace, capture, last }
}
