import type { HttpExecutor } from '../../shared/contract/tools.js'
import { validation } from '../../shared/errors/app-error.js'
import { isHeaderValue, utf8Bytes } from './header-check.js'
import { percentEncoded } from './percent-encoding.js'
import type { SecretSlots } from './secret-slots.js'
import { fillTemplate, parseTemplate } from './template-references.js'

export type Method = HttpExecutor['method']
export type Arguments = Readonly<Record<string, unknown>>

/** A request with the arguments in it and placeholders for the secrets: what a requestTransform gets. */
export interface DraftRequest {
  url: string
  method: Method
  headers: [name: string, value: string][]
  query: [name: string, value: string][]
  /** JSON; null: none. */
  body: unknown
}

const takesBody = new Set<Method>(['POST', 'PUT', 'PATCH'])

/**
 * Fills an executor's templates (spec 1, HTTP executor fields): percent-encoded in the url, as they are in query values
 * and headers. Text is filled in as text, anything else as JSON.
 *
 * A missing or null argument drops a header or query value that is nothing but it, and is empty text elsewhere, except
 * in the url's path, where `DELETE /items/` is another call than `DELETE /items/7`.
 *
 * @throws AppError VALIDATION_ERROR that names the argument.
 */
export function buildRequest(executor: HttpExecutor, args: Arguments, slots: SecretSlots): DraftRequest {
  const { method } = executor
  return {
    url: fillUrl(executor.url, args, slots),
    method,
    headers: pairsOf(executor.headers, 'headers', args, slots, headerText),
    query: pairsOf(executor.query, 'query', args, slots, text => text),
    body: takesBody.has(method) ? args : null,
  }
}

/** The secrets that an executor's templates name. */
export function secretsOf(executor: HttpExecutor): string[] {
  const templates = [executor.url, ...[...executor.headers, ...executor.query].map(pair => pair.value)]
  const parts = templates.flatMap(template => parseTemplate(template, 'executor'))
  return [...new Set(parts.flatMap(part => (part.kind === 'secret' ? [part.name] : [])))]
}

function pairsOf(
  pairs: HttpExecutor['headers'],
  field: string,
  args: Arguments,
  slots: SecretSlots,
  check: (text: string, name: string) => string,
): [string, string][] {
  return pairs.flatMap(({ name, value }, place): [string, string][] => {
    const parts = parseTemplate(value, `executor.${field}.${place}.value`)
    const [only] = parts
    if (parts.length === 1 && only?.kind === 'arg' && argument(args, only.name) === null) return []
    const texts = parts.map(part => {
      if (part.kind !== 'arg') return part.kind === 'text' ? part.text : slots.placeholder(part.name)
      return check(argument(args, part.name) ?? '', part.name)
    })
    return [[name, texts.join('')]]
  })
}

/** A line break would start another header. Letters outside ASCII go as UTF-8. */
function headerText(text: string, name: string): string {
  if (isHeaderValue(utf8Bytes(text))) return text
  throw validation(`arguments.${name}: Line breaks and control characters cannot be sent in a header.`)
}

/** Path segments that a URL parser takes away, with the segment before them. */
const dots = /^(?:\.|%2e){1,2}$/i

function fillUrl(template: string, args: Arguments, slots: SecretSlots): string {
  const parts = parseTemplate(template, 'executor.url')
  const url = fillTemplate(parts, ({ kind, name }) =>
    percentEncoded(kind === 'secret' ? slots.placeholder(name) : (argument(args, name) ?? '')),
  )
  const sample = pathSegments(fillTemplate(parts, () => 'x'))
  const written = pathSegments(template)
  for (const [place, segment] of pathSegments(url).entries()) {
    if (segment === sample[place]) continue
    const name = /\{\{\s*arg\.([\w$-]+)/.exec(written[place] ?? '')?.[1]
    if (segment === '') throw validation(`arguments.${name}: Required`)
    // `..` of a model must not climb out of the path that the author wrote.
    if (dots.test(segment)) throw validation(`arguments.${name}: Must not be a relative path segment.`)
  }
  return url
}

/** Split at slashes, which no reference holds and no value brings: they are percent-encoded. */
const pathSegments = (url: string): string[] => (url.split(/[?#]/)[0] ?? '').split('/')

/** Null: missing. */
function argument(args: Arguments, name: string): string | null {
  const value = Object.hasOwn(args, name) ? args[name] : null
  if (value === undefined || value === null) return null
  return typeof value === 'string' ? value : JSON.stringify(value)
}
