import { AppError } from '../../../shared/errors/app-error.js'
import { type CompiledPrompt, compilePrompt, renderPrompt } from '../../../shared/templates/render.js'

export const compiled = (...contents: string[]): CompiledPrompt =>
  compilePrompt(contents.map(content => ({ role: 'user', content })))

/** One message's text. */
export const rendered = (template: string, variables: Record<string, unknown> = {}): string =>
  renderPrompt(compiled(template), variables)[0]?.content ?? ''

/** As Jinja renders, which asks for no variable: what is not supplied is undefined. */
export const renderedAsJinja = (template: string, variables: Record<string, unknown> = {}): string =>
  renderPrompt({ ...compiled(template), required: [] }, variables)[0]?.content ?? ''

export interface Refusal {
  code: string
  message: string
}

/** The public error of work that must be refused. */
export function refusal(work: () => unknown): Refusal {
  try {
    work()
  } catch (error) {
    if (error instanceof AppError) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('nothing was refused')
}

export const parseRefusal = (template: string) => refusal(() => compiled(template))

export const renderRefusal = (template: string, variables: Record<string, unknown> = {}) =>
  refusal(() => rendered(template, variables))
