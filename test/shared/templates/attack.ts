/** A template that somebody hopes does harm. `parses`/`renders` are not stated: harm is what must not happen. */
export interface Attack {
  name: string
  template: string
  variables?: Record<string, unknown>
}

/** Every payload tries to leave this trace. */
export const TRACE = '__templateAttack'
export const PAYLOAD = `globalThis.${TRACE}=1`

export const attack = (name: string, template: string, variables?: Record<string, unknown>): Attack =>
  variables === undefined ? { name, template } : { name, template, variables }
