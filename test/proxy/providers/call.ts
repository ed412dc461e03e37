import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type {
  ChatRequest,
  StreamReader,
  UpstreamCall,
  UpstreamRequest,
} from '../../../proxy/providers/adapter.js'
import type { Json } from '../../../proxy/providers/wire-values.js'
import type { ProviderKind } from '../../../shared/contract/common.js'

// Compiled tests run from dist/; recorded answers stay in the source tree.
const here = dirname(fileURLToPath(import.meta.url))
const sourceRoot = here.replace(/([/\\])dist([/\\]test[/\\]proxy[/\\]providers)$/, '$2')
export const stub = (kind: ProviderKind, name: string): Buffer =>
  readFileSync(join(sourceRoot, 'stubs', kind, name))

export const stubsOf = (kind: ProviderKind): string[] => readdirSync(join(sourceRoot, 'stubs', kind))

export const models: Record<ProviderKind, string> = {
  openai: 'gpt-4.1-2025-04-14',
  openai_compatible: 'anthropic/claude-sonnet-4',
  anthropic: 'claude-sonnet-4-5-20250929',
  google: 'gemini-3-pro',
}

const bases: Record<ProviderKind, string> = {
  openai: 'https://api.openai.com/v1',
  openai_compatible: 'http://127.0.0.1:9/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
}

export function callOf(
  kind: ProviderKind,
  request: Partial<ChatRequest> = {},
  overrides: Partial<UpstreamCall> = {},
): UpstreamCall {
  return {
    request: { model: 'public', messages: [{ role: 'user', content: 'Hi' }], ...request },
    raw: null,
    upstreamModel: models[kind],
    baseUrl: bases[kind],
    apiKey: 'sk-secret-key-0123456789',
    stream: request.stream === true,
    wantsUsage: request.stream_options?.include_usage === true,
    maxOutputTokens: null,
    requestId: '00000000-0000-4000-8000-000000000000',
    ...overrides,
  }
}

export const bodyOf = (request: UpstreamRequest): Json => JSON.parse(request.body.toString('utf8')) as Json

export function headerOf(request: UpstreamRequest, name: string): string | undefined {
  const at = request.headers.indexOf(name)
  return at < 0 ? undefined : request.headers[at + 1]
}

/** Everything the client gets from a stream that arrives in the given pieces. */
export function relayed(reader: StreamReader, pieces: Iterable<Buffer>): string {
  const out: Uint8Array[] = []
  for (const piece of pieces) out.push(reader.push(piece))
  out.push(reader.end())
  return Buffer.concat(out).toString('utf8')
}

/** The JSON of every data frame; `[DONE]` as text. */
export function framesOf(text: string): (Json | '[DONE]')[] {
  return text
    .split(/\r?\n\r?\n/)
    .flatMap(frame => frame.split(/\r?\n/).filter(line => line.startsWith('data:')))
    .map(line => line.slice(5).trim())
    .map(data => (data === '[DONE]' ? data : (JSON.parse(data) as Json)))
}

export const chunksOf = (text: string): Json[] => framesOf(text).filter(frame => frame !== '[DONE]')
