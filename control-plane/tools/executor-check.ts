import type { Executor, HttpExecutor } from '../../shared/contract/tools.js'
import { validation } from '../../shared/errors/app-error.js'
import type { Deps } from '../deps.js'
import type { Verdict } from '../sandbox/sandbox.js'
import { knownSecrets } from '../secrets/queries.js'
import { checkHeader } from './header-check.js'
import { refusedUrl } from './outbound.js'
import { checkStorable } from './storable-json.js'
import { fillTemplate, parseTemplate, type TemplatePart } from './template-references.js'

/**
 * Whether a version may be committed (spec 1, tool versions; spec 4, section 9 Tools). Cheap checks come first; last the
 * sandbox and the look-up of the executor's host, so call it outside a transaction. What may change after the commit, a
 * secret or an address, is checked again by every call.
 *
 * @throws AppError VALIDATION_ERROR that names the field.
 */
export async function checkVersion(
  deps: Pick<Deps, 'sql' | 'sandbox' | 'config'>,
  teamId: string,
  version: { parametersSchema: Record<string, unknown>; executor: Executor },
): Promise<void> {
  const { parametersSchema, executor } = version
  checkStorable({ parametersSchema, executor })
  const { type } = parametersSchema
  if (type !== undefined && type !== 'object') {
    throw validation("parametersSchema.type: Arguments are an object; type must be 'object'.")
  }
  const parts = executor.type === 'http' ? readTemplates(executor) : []
  await requireSecrets(deps, teamId, parts)
  accept('parametersSchema', await deps.sandbox.checkSchema(parametersSchema, teamId))
  if (executor.type === 'http') await checkHttp(deps, teamId, executor)
}

/** @returns every part of every template of the executor. */
function readTemplates(executor: HttpExecutor): TemplatePart[] {
  const url = readUrl(executor.url)
  const headers = executor.headers.map((header, place) => {
    const parts = parseTemplate(header.value, `executor.headers.${place}.value`)
    checkHeader(header.name, parts, `executor.headers.${place}`)
    return parts
  })
  const query = executor.query.map(({ name, value }, place) => {
    if (name.includes('{{')) {
      throw validation(`executor.query.${place}.name: References may stand in values only.`)
    }
    return parseTemplate(value, `executor.query.${place}.value`)
  })
  return [url, ...headers, ...query].flat()
}

/** A backslash is a slash to URL parsers and white space is nothing; here both are mistakes. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it is about.
const notInUrls = /[\u0000-\u0020\u007f\\]/
/**
 * Scheme, then user, host and port. Stricter than URL parsers, which take fewer and more slashes too and would find the
 * host in what is the path here.
 */
const origin = /^[a-z][a-z0-9+.-]*:\/\/([^/?#]+)/i

/**
 * Neither a secret nor an argument may decide where a call goes: a model that picks the host picks who gets the team's
 * secrets.
 */
function readUrl(template: string): TemplatePart[] {
  const parts = parseTemplate(template, 'executor.url')
  const sample = fillTemplate(parts, () => 'x')
  if (notInUrls.test(sample) || !URL.canParse(sample)) throw validation('executor.url: Invalid url')
  const authority = origin.exec(template)?.[1]
  if (authority?.includes('{{') ?? template.includes('{{')) {
    throw validation('executor.url: References may not stand in the scheme, host or port.')
  }
  if (authority === undefined) throw validation('executor.url: Invalid url')
  return parts
}

async function requireSecrets(
  deps: Pick<Deps, 'sql'>,
  teamId: string,
  parts: readonly TemplatePart[],
): Promise<void> {
  const names = new Set(parts.flatMap(part => (part.kind === 'secret' ? [part.name] : [])))
  const known = await knownSecrets(deps.sql, teamId, [...names])
  const unknown = [...names].find(name => !known.has(name))
  if (unknown !== undefined) throw validation(`Unknown secret '{{secret.${unknown}}}'.`)
}

async function checkHttp(
  deps: Pick<Deps, 'sandbox' | 'config'>,
  teamId: string,
  executor: HttpExecutor,
): Promise<void> {
  for (const field of ['requestTransform', 'responseTransform', 'failureWhen'] as const) {
    const source = executor[field]
    if (source !== undefined) {
      accept(`executor.${field}`, await deps.sandbox.checkTransform(source, teamId))
    }
  }
  if (executor.resultSchema !== undefined) {
    accept('executor.resultSchema', await deps.sandbox.checkSchema(executor.resultSchema, teamId))
  }
  const reason = await refusedUrl(deps, sampleUrl(executor.url))
  if (reason !== null) throw validation(`The executor's URL cannot be called: ${reason}`)
}

/** The URL with something in place of each reference; scheme, host and port are what a call will have. */
const sampleUrl = (template: string) => fillTemplate(parseTemplate(template, 'executor.url'), () => 'x')

function accept(field: string, verdict: Verdict<null>): void {
  if (!verdict.ok) throw validation(`${field}: ${verdict.message}`)
}
