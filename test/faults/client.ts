import { Agent, request } from 'undici'

/** How a call looked from outside. */
export interface SeenCall {
  /** Travels in the span's metadata and as the provider's `user`, so that a call is known on both sides. */
  token: string
  startedAtMs: number
  endedAtMs: number
  stream: boolean
  /**
   * complete: the whole answer came. refused: an answer other than 200. unreached: no connection was had. cut: the
   * connection broke, or the stream ended without `[DONE]`. left: this client went away on purpose.
   */
  outcome: 'complete' | 'refused' | 'unreached' | 'cut' | 'left'
  /** 0 when there was none. */
  status: number
  /** Of a refusal's envelope, or of the error frame that ended a stream. */
  errorCode: string | null
  headers: Record<string, string>
  /** The provider's id of the answer, as far as it was seen. */
  answerId: string | null
}

export interface Asking {
  token: string
  key: string
  model: string
  /** The last user message; the fake provider reads its faults from it. */
  content: string
  stream: boolean
  maxTokens?: number
  headers?: Record<string, string>
  /** Milliseconds after which the client goes away. */
  leaveAfterMs?: number
}

/** An application that calls completions; kept-alive connections, no retries, no opinion on failures. */
export interface Client {
  ask(asking: Asking): Promise<SeenCall>
  close(): Promise<void>
}

export function createClient(baseUrl: string): Client {
  const agent = new Agent({
    pipelining: 1,
    keepAliveTimeout: 4_000,
    headersTimeout: 30_000,
    bodyTimeout: 30_000,
  })
  return {
    ask: asking => ask(baseUrl, agent, asking),
    close: () => agent.destroy(),
  }
}

async function ask(baseUrl: string, agent: Agent, asking: Asking): Promise<SeenCall> {
  const seen: SeenCall = {
    token: asking.token,
    startedAtMs: performance.now(),
    endedAtMs: 0,
    stream: asking.stream,
    outcome: 'cut',
    status: 0,
    errorCode: null,
    headers: {},
    answerId: null,
  }
  const leaving = new AbortController()
  const timer =
    asking.leaveAfterMs === undefined ? undefined : setTimeout(() => leaving.abort(), asking.leaveAfterMs)
  try {
    const response = await request(`${baseUrl}/chat/completions`, {
      method: 'POST',
      dispatcher: agent,
      signal: leaving.signal,
      headers: {
        authorization: `Bearer ${asking.key}`,
        'content-type': 'application/json',
        'x-span-metadata': JSON.stringify({ call: asking.token }),
        ...asking.headers,
      },
      body: bodyOf(asking),
    })
    seen.status = response.statusCode
    seen.headers = response.headers as Record<string, string>
    readAnswer(seen, await response.body.text())
  } catch (error) {
    const { code } = error as { code?: string }
    if (leaving.signal.aborted) seen.outcome = 'left'
    else if (code === 'ECONNREFUSED') seen.outcome = 'unreached'
  } finally {
    clearTimeout(timer)
    seen.endedAtMs = performance.now()
  }
  return seen
}

function bodyOf({ model, content, stream, maxTokens, token }: Asking): string {
  return JSON.stringify({
    model,
    messages: [{ role: 'user', content }],
    user: token,
    ...(stream && { stream }),
    ...(maxTokens !== undefined && { max_tokens: maxTokens }),
  })
}

const CHUNK_ID = /"id":"(chatcmpl-[^"]+)"/

function readAnswer(seen: SeenCall, text: string): void {
  if (seen.status !== 200) {
    seen.outcome = 'refused'
    seen.errorCode = errorCodeOf(text)
    return
  }
  seen.answerId = CHUNK_ID.exec(text)?.[1] ?? null
  if (!seen.stream) {
    seen.outcome = 'complete'
    return
  }
  if (text.endsWith('data: [DONE]\n\n')) seen.outcome = 'complete'
  else seen.errorCode = errorCodeOf(text.slice(text.lastIndexOf('data: ') + 6))
}

function errorCodeOf(text: string): string | null {
  try {
    return (JSON.parse(text) as { error?: { code?: string } }).error?.code ?? null
  } catch {
    return null
  }
}
