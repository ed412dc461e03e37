/**
 * An OpenAI-compatible upstream that costs as little as it can, so that it is never the bottleneck: a 1.1 KB
 * completion, or a stream whose pace and length the path says: /slow/<chunks>/<gap ms>/v1/chat/completions.
 * Runs as a program of its own: `node mock-upstream.js <port>`.
 */
import uws from 'uWebSockets.js'

const text = 'The quick brown fox jumps over the lazy dog. '.repeat(12).trim()
const usage = { prompt_tokens: 87, completion_tokens: 132, total_tokens: 219 }
const details = {
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
}
const base = { id: 'chatcmpl-9x8y7z6w5v4u3t2s1r0q', created: 1751234567, model: 'gpt-4o-mini-2024-07-18' }
const completion = JSON.stringify({
  ...base,
  object: 'chat.completion',
  choices: [
    {
      index: 0,
      message: { role: 'assistant', content: text, refusal: null, annotations: [] },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage: { ...usage, ...details },
  service_tier: 'default',
  system_fingerprint: 'fp_44added55e',
})

const chunk = (choices: unknown[], more = {}) =>
  `data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', service_tier: 'default', system_fingerprint: 'fp_44added55e', choices, ...more })}\n\n`
const delta = (value: unknown, finish: string | null) =>
  chunk([{ index: 0, delta: value, logprobs: null, finish_reason: finish }])
const firstChunk = delta({ role: 'assistant', content: '', refusal: null }, null)
const middleChunk = delta({ content: ' lazy' }, null)
const lastChunks = `${delta({}, 'stop')}${chunk([], { usage })}data: [DONE]\n\n`

const providerHeaders: [string, string][] = [
  ['x-request-id', 'req_0f1e2d3c4b5a69788796a5b4c3d2e1f0'],
  ['openai-organization', 'org-bench'],
  ['openai-processing-ms', '312'],
  ['openai-version', '2020-10-01'],
  ['x-ratelimit-limit-requests', '10000'],
  ['x-ratelimit-remaining-requests', '9999'],
  ['x-ratelimit-remaining-tokens', '1999000'],
]

function head(res: uws.HttpResponse, contentType: string): void {
  res.writeStatus('200 OK').writeHeader('content-type', contentType)
  for (const [name, value] of providerHeaders) res.writeHeader(name, value)
}

function streamTo(res: uws.HttpResponse, chunks: number, gapMs: number): void {
  let sent = 1
  let timer: NodeJS.Timeout | undefined
  res.onAborted(() => clearInterval(timer))
  res.cork(() => {
    head(res, 'text/event-stream; charset=utf-8')
    res.write(firstChunk)
  })
  timer = setInterval(() => {
    res.cork(() => {
      if (++sent < chunks) res.write(middleChunk)
      else {
        clearInterval(timer)
        res.end(lastChunks)
      }
    })
  }, gapMs)
}

const app = uws.App()
app.post('/v1/chat/completions', res => {
  let gone = false
  res.onAborted(() => {
    gone = true
  })
  res.onData((_bytes, last) => {
    if (!last || gone) return
    res.cork(() => {
      head(res, 'application/json')
      res.end(completion)
    })
  })
})
app.post('/slow/:chunks/:gap/v1/chat/completions', (res, req) => {
  const [chunks, gapMs] = [Number(req.getParameter(0)), Number(req.getParameter(1))]
  res.onAborted(() => {})
  res.onData((_bytes, last) => {
    if (last) streamTo(res, chunks, gapMs)
  })
})
app.listen('127.0.0.1', Number(process.argv[2]), socket => {
  if (!socket) process.exit(1)
})
