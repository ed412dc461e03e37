import { validation } from '../../shared/errors/app-error.js'

/** A piece of a value template: text as it stands, or a reference to a tool argument or a team secret. */
export type TemplatePart = { kind: 'text'; text: string } | { kind: 'arg' | 'secret'; name: string }

/** Spaces inside the braces do no harm; any other `{{` is a mistake that would be sent out as text. */
const reference = /\{\{\s*(arg|secret)\.([\w$-]+)\s*\}\}|\{\{/g

/**
 * A value template of an http executor, in the url, a query value or a header value (spec 1, HTTP executor fields).
 *
 * @param field names the template in the message, `executor.url`.
 * @throws AppError VALIDATION_ERROR for a reference other than `{{arg.NAME}}` and `{{secret.NAME}}`.
 */
export function parseTemplate(template: string, field: string): TemplatePart[] {
  const parts: TemplatePart[] = []
  let read = 0
  const text = (end: number) => {
    if (end > read) parts.push({ kind: 'text', text: template.slice(read, end) })
  }
  for (const match of template.matchAll(reference)) {
    const [whole, kind, name] = match
    if (name === undefined) throw validation(`${field}: ${unknownReference(template.slice(match.index))}`)
    text(match.index)
    parts.push({ kind: kind === 'arg' ? 'arg' : 'secret', name })
    read = match.index + whole.length
  }
  text(template.length)
  return parts
}

/** Parts as one text, each reference replaced by what `fill` makes of it. */
export const fillTemplate = (
  parts: readonly TemplatePart[],
  fill: (reference: { kind: 'arg' | 'secret'; name: string }) => string,
): string => parts.map(part => (part.kind === 'text' ? part.text : fill(part))).join('')

function unknownReference(rest: string): string {
  const shown = /^\{\{[^}]{0,60}\}\}/.exec(rest)?.[0] ?? '{{'
  return `'${shown}' is not a reference; use {{arg.NAME}} or {{secret.NAME}}.`
}
