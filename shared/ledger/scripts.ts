import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'

/** A Lua script as Redis knows it: by the SHA-1 of its text, or by the text when it does not know it yet. */
export interface Script {
  sha: string
  source: string
}

/** Script name -> the files that it is made of, in order; Redis 6.2 has no libraries, so they are joined. */
const parts = {
  admit: ['clock', 'holds', 'window', 'admit'],
  settle: ['holds', 'settle'],
  extend: ['holds', 'extend'],
  renew: ['clock', 'holds', 'renew'],
  look: ['look'],
  publish: ['clock', 'publish'],
  retract: ['retract'],
  spend: ['clock', 'holds', 'spend'],
  seed: ['seed'],
  raise: ['clock', 'holds', 'raise'],
} as const

export type ScriptName = keyof typeof parts
export type Scripts = Record<ScriptName, Script>

/** Reads lua/*.lua beside this file. */
export function loadScripts(): Scripts {
  const entries = Object.entries(parts).map(([name, files]) => {
    const source = files
      .map(file => readFileSync(new URL(`./lua/${file}.lua`, import.meta.url), 'utf8'))
      .join('\n')
    return [name, { source, sha: createHash('sha1').update(source).digest('hex') }]
  })
  return Object.fromEntries(entries) as Scripts
}
