import { appendFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Fault, faultIn, parseFault } from './fake-fault.js'
import { type FakeAnswer, type Format, formats } from './fake-formats.js'
import { type Asked, askedOf, type FakeKind } from './fake-request.js'

export type { Fault } from './fake-fault.js'

/**
 * A provider that speaks OpenAI's, Anthropic's and Google's formats over real HTTP, plain and streamed, calls a tool when
 * tools are given and the last user message says `use <name>`, fails on demand, and keeps its own bill.
 *
 * Faults: `fake.next(fault)` for the next call, a header `x-fake-fault: status=500`, or `[fault cut=120]` in the last
 * user message. Prompt tokens are a quarter of the messages' JSON; every word of the answer is one output token.
 */
export interface FakeProvider {
  readonly port: number
  /** `http://127.0.0.1:<port>` */
  readonly origin: string
  /** With the vendor's version segment. */
  baseUrl(kind: FakeKind): string
  /** Every answer it worked on, in order of arrival. Also `GET /bill`. */
  readonly bill: readonly BillEntry[]
  /** The last 1,000 requests. Also `GET /requests`. */
  readonly requests: readonly SeenRequest[]
  /** Open connections. */
  readonly connections: number
  /** Answers whose client went away before the end. */
  readonly aborted: number
  /** For the next calls, in order. */
  next(...faults: Fault[]): void
  /** For every call that has no fault of its own; null: none. */
  always(fault: Fault | null): void
  /** Closes the port, and with it every connection: calls are refused until `accept`. */
  refuse(): Promise<void>
  accept(): Promise<void>
  stop(): Promise<void>
}

export interface BillEntry {
  /** The id in the answer. */
  id: string
  model: string
  promptTokens: number
  /** So far, for an answer that was cut. */
  completionTokens: number
  cachedTokens: number
  /** Whether the whole answer was sent. */
  finished: boolean
  /** The request's `user`, to tell callers apart. */
  user: string | null
}

export interface SeenRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  body: unknown
}

export interface FakeProviderOptions {
  port?: number
  host?: string
  /** Every answer is appended here as a line of JSON when it ends, finished or not. */
  billFile?: string
  /** Off for load: requests and the bill are not kept in memory. */
  keep?: boolean
}

export async function startFakeProvider(options: FakeProviderOptions = {}): Promise<FakeProvider> {
  const fake = new Fake(options)
  await fake.accept()
  return fake
}

const WORDS = ['Hello', ' from', ' the', ' fake', ' provider', '.']

class Fake implements FakeProvider {
  readonly bill: BillEntry[] = []
  readonly requests: SeenRequest[] = []
  aborted = 0
  port: number
  readonly #host: string
  readonly #billFile: string | undefined
  readonly #keep: boolean
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((request, response) => void this.#serve(request, response))
  #queue: Fault[] = []
  #always: Fault | null = null
  #count = 0

  constructor(options: FakeProviderOptions) {
    this.port = options.port ?? 0
    this.#host = options.host ?? '127.0.0.1'
    this.#billFile = options.billFile
    this.#keep = options.keep ?? true
    this.#server.keepAliveTimeout = 30_000
    this.#server.on('connection', socket => {
      this.#sockets.add(socket)
      socket.once('close', () => this.#sockets.delete(socket))
      socket.on('error', () => {})
    })
  }

  get origin(): string {
    return `http://${this.#host}:${this.port}`
  }

  get connections(): number {
    return this.#sockets.size
  }

  baseUrl(kind: FakeKind): string {
    return `${this.origin}/${kind === 'google' ? 'v1beta' : 'v1'}`
  }

  next(...faults: Fault[]): void {
    this.#queue.push(...faults)
  }

  always(fault: Fault | null): void {
    this.#always = fault
  }

  accept(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#server.once('error', reject)
      this.#server.listen(this.port, this.#host, () => {
        this.#server.off('error', reject)
        this.port = (this.#server.address() as AddressInfo).port
        resolve()
      })
    })
  }

  refuse(): Promise<void> {
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    for (const socket of this.#sockets) socket.destroy()
    return closed
  }

  stop(): Promise<void> {
    return this.#server.listening ? this.refuse() : Promise.resolve()
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await bodyOf(request)
    if (text === null) return
    if (request.method === 'GET') return this.#report(request, response)
    const asked = askedOf(request, text)
    if (this.#keep) this.#remember(request, asked)
    const fault = this.#faultFor(request, asked)
    const cutsItself = fault.cut !== undefined || fault.reset === true
    response.once('close', () => {
      if (!response.writableFinished && !cutsItself) this.aborted++
    })
    if (fault.headDelay) await sleep(fault.headDelay)
    if (fault.reset) request.socket.resetAndDestroy()
    if (fault.reset || fault.hang) return
    const format = formats[asked.kind]
    if (asked.problem !== null)
      return sendError(response, format, asked.problem.status, asked.problem.message)
    if (fault.status)
      return sendError(response, format, fault.status, 'The fake provider was told to fail.', fault)
    await this.#answer(response, asked, fault, format)
  }

  async #answer(response: ServerResponse, asked: Asked, fault: Fault, format: Format): Promise<void> {
    const answer = this.#compose(asked, fault)
    const entry: BillEntry = {
      id: answer.id,
      model: answer.model,
      promptTokens: answer.promptTokens,
      completionTokens: 0,
      cachedTokens: answer.cachedTokens,
      finished: false,
      user: asked.user,
    }
    if (this.#keep) this.bill.push(entry)
    const body = new BodyWriter(response, fault)
    try {
      if (asked.stream) await sendStream(body, format, answer, fault, entry)
      else {
        entry.completionTokens = answer.completionTokens
        await sendPlain(body, format, answer, fault)
      }
      entry.finished = body.whole
    } finally {
      if (this.#billFile !== undefined) appendFileSync(this.#billFile, `${JSON.stringify(entry)}\n`)
    }
  }

  #compose(asked: Asked, fault: Fault): FakeAnswer {
    const id = `${asked.kind === 'anthropic' ? 'msg' : 'chatcmpl'}-fake${String(++this.#count).padStart(12, '0')}`
    const wanted = fault.chunks ?? WORDS.length
    const pieces = Array.from({ length: Math.min(wanted, asked.maxTokens) }, (_, at) =>
      fault.chunkBytes ? 'x'.repeat(fault.chunkBytes) : (WORDS[at % WORDS.length] ?? ''),
    )
    const { tool } = asked
    return {
      id,
      model: asked.model,
      pieces,
      tool: tool === null ? null : { name: tool, input: { city: 'Zürich', days: 2 } },
      promptTokens: asked.promptTokens,
      cachedTokens: Math.min(asked.promptTokens, fault.cachedTokens ?? 0),
      completionTokens: (tool === null ? pieces.length : 3) * asked.choices,
      cutShort: tool === null && wanted > asked.maxTokens,
      choices: asked.choices,
      wantsUsage: asked.wantsUsage,
    }
  }

  #faultFor(request: IncomingMessage, asked: Asked): Fault {
    const queued = this.#queue.shift()
    if (queued !== undefined) return queued
    const header = request.headers['x-fake-fault']
    if (typeof header === 'string') return parseFault(header)
    return faultIn(asked.lastUserText) ?? this.#always ?? {}
  }

  #remember(request: IncomingMessage, asked: Asked): void {
    const { method = '', url = '', headers } = request
    this.requests.push({ method, path: url, headers, body: asked.body })
    if (this.requests.length > 1000) this.requests.shift()
  }

  #report(request: IncomingMessage, response: ServerResponse): void {
    const reports: Record<string, unknown> = {
      '/bill': this.bill,
      '/requests': this.requests,
      '/stats': { connections: this.connections, aborted: this.aborted },
    }
    const report = reports[request.url ?? '']
    response.writeHead(report === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(report ?? { error: { message: 'Not found' } }))
  }
}

/** @returns null when the client left before its request was whole. */
async function bodyOf(request: IncomingMessage): Promise<string | null> {
  const chunks: Buffer[] = []
  try {
    for await (const chunk of request) chunks.push(chunk as Buffer)
  } catch {
    return null
  }
  return Buffer.concat(chunks).toString('utf8')
}

function sendError(
  response: ServerResponse,
  format: Format,
  status: number,
  message: string,
  fault: Fault = {},
): void {
  const headers: Record<string, string> = { 'content-type': 'application/json' }
  if (fault.retryAfter !== undefined) headers['retry-after'] = fault.retryAfter
  response.writeHead(status, headers)
  response.end(fault.body ?? JSON.stringify(format.error(status, message)))
}

async function sendPlain(body: BodyWriter, format: Format, answer: FakeAnswer, fault: Fault): Promise<void> {
  const text = fault.garbage ? '<html>not an answer' : JSON.stringify(format.plain(answer, fault))
  body.head('application/json', Buffer.byteLength(text) + (fault.lengthOff ?? 0))
  await body.write(text)
  body.end()
}

async function sendStream(
  body: BodyWriter,
  format: Format,
  answer: FakeAnswer,
  fault: Fault,
  entry: BillEntry,
): Promise<void> {
  body.head('text/event-stream; charset=utf-8', null)
  let sent = 0
  for (const frame of format.frames(answer, fault)) {
    if (fault.garbage && sent === 2) await body.write('data: {"choices": oops\n\n')
    if (fault.inBandError === sent) {
      const error = format.error(529, 'Overloaded, said the fake provider.')
      await body.write(`event: error\ndata: ${JSON.stringify(error)}\n\n`)
      return body.end()
    }
    if (fault.chunkDelay && frame.tokens > 0) await sleep(fault.chunkDelay)
    if (!(await body.write(frame.text))) return
    entry.completionTokens += frame.tokens
    sent++
  }
  body.end()
}

/** Writes a body as the fault has it; waits for a client that reads slowly. */
class BodyWriter {
  whole = false
  #left: number

  constructor(
    readonly response: ServerResponse,
    readonly fault: Fault,
  ) {
    this.#left = fault.cut ?? Number.POSITIVE_INFINITY
  }

  /** @param length null for a body of unknown length. */
  head(contentType: string, length: number | null): void {
    const { response, fault } = this
    if (fault.closeDelimited) {
      response.useChunkedEncodingByDefault = false
      response.shouldKeepAlive = false
    }
    response.writeHead(200, {
      'content-type': contentType,
      'openai-organization': 'org-fake',
      'openai-processing-ms': '12',
      'openai-version': '2020-10-01',
      'x-ratelimit-limit-requests': '10000',
      'x-ratelimit-remaining-requests': '9999',
      'x-request-id': 'req_0123456789abcdef',
      ...(length !== null && !fault.closeDelimited && { 'content-length': length }),
    })
  }

  /** @returns false when the client has gone or the body was cut. */
  async write(text: string): Promise<boolean> {
    const bytes = Buffer.from(text)
    const allowed = bytes.subarray(0, this.#left)
    this.#left -= allowed.length
    const step = this.fault.oneByte ? 1 : allowed.length || 1
    for (let at = 0; at < allowed.length; at += step) {
      if (this.response.destroyed) return false
      const flushed = this.response.write(allowed.subarray(at, at + step))
      // Small writes of one turn would travel together.
      if (this.fault.oneByte && at % 16 === 0) await new Promise(setImmediate)
      if (!flushed) await this.#drained()
    }
    if (allowed.length === bytes.length) return !this.response.destroyed
    await sleep(5)
    if (this.fault.closeDelimited) this.response.end()
    else this.response.destroy()
    return false
  }

  end(): void {
    if (this.response.destroyed || this.#left === 0) return
    this.response.end()
    this.whole = true
  }

  #drained(): Promise<void> {
    return new Promise(resolve => {
      const done = () => {
        this.response.off('drain', done)
        this.response.off('close', done)
        resolve()
      }
      this.response.once('drain', done)
      this.response.once('close', done)
    })
  }
}
