import type { MissingRecord, ReferencesAnswer, ToolDefinition } from '../../shared/directory/records.js'
import { createRecentMap } from '../../shared/memory/recent-map.js'
import { type CompiledPrompt, compilePrompt } from '../../shared/templates/render.js'
import type { ControlPlaneClient, ReferencesQuery } from '../control-plane-client.js'

/** What a call's references stand for; each thing found or missing. */
export interface FoundReferences {
  prompt: FoundPrompt | MissingRecord | null
  tools: (ToolDefinition | MissingRecord)[]
  promptVersionKnown: boolean | null
}

export interface FoundPrompt {
  versionId: string
  versionNumber: number
  /** The bound model's publicName. */
  model: string | null
  /** Parsed once for as long as the version is remembered: up to 2 ms, where a rendering costs some microseconds. */
  compiled: CompiledPrompt
  tools: ToolDefinition[]
}

/** What a call names, without its variables: the same for every call of a place in an application. */
export type Wanted = Omit<ReferencesQuery, 'teamId'>

export interface References {
  /**
   * @param team by whose configuration the call is judged. What is remembered was read at its epoch or later, and the
   *   ledger tells the call when there is a later one, so a moved alias holds for the next call.
   * @throws ControlPlaneAway when it must ask and cannot. @throws AppError for a template that no longer parses.
   */
  find(team: TeamEpoch, wanted: Wanted): FoundReferences | Promise<FoundReferences>
  clear(): void
}

export interface TeamEpoch {
  readonly teamId: string
  readonly epoch: number
}

interface Remembered {
  epoch: number
  found: FoundReferences
  /** Characters of question and answer: what it costs in memory, some ten times that once its templates are parsed. */
  size: number
}

/** Some 100 MB at the worst, parsed. */
const MOST_CHARACTERS = 10_000_000
/** Beside its text: map entry and objects. */
const ENTRY_CHARACTERS = 500

/** The stored prompts and tools that calls name, remembered by what they name and the team's epoch. */
export function createReferences(client: Pick<ControlPlaneClient, 'lookUpReferences'>): References {
  const known = createRecentMap<Remembered>(MOST_CHARACTERS, ({ size }) => size)
  const loads = new Map<string, Promise<FoundReferences>>()

  async function load(key: string, teamId: string, epoch: number, wanted: Wanted): Promise<FoundReferences> {
    const answer = await client.lookUpReferences({ teamId, ...wanted })
    const size = ENTRY_CHARACTERS + key.length + JSON.stringify(answer).length
    const found = foundOf(answer, known.get(key)?.found)
    known.set(key, { epoch, found, size })
    return found
  }

  return {
    find({ teamId, epoch }, wanted) {
      const key = `${teamId} ${JSON.stringify(wanted)}`
      const remembered = known.get(key)
      if (remembered !== undefined && remembered.epoch === epoch) return remembered.found
      // Many calls that name the same at once ask once; a load of another epoch may have read too early.
      const loadKey = `${epoch} ${key}`
      const current = loads.get(loadKey)
      if (current !== undefined) return current
      const promise = load(key, teamId, epoch, wanted).finally(() => loads.delete(loadKey))
      loads.set(loadKey, promise)
      return promise
    },
    clear() {
      known.clear()
      loads.clear()
    },
  }
}

/** @param before what the same reference stood for: a version never changes, so it need not be parsed again. */
function foundOf(answer: ReferencesAnswer, before: FoundReferences | undefined): FoundReferences {
  const { prompt, tools, promptVersionKnown } = answer
  if (prompt === null || 'missing' in prompt) return { prompt, tools, promptVersionKnown }
  const { versionId, versionNumber, model } = prompt
  const held = before?.prompt
  const isHeld = held != null && !('missing' in held) && held.versionId === versionId
  const compiled = isHeld ? held.compiled : compilePrompt(prompt.messages)
  return {
    prompt: { versionId, versionNumber, model, compiled, tools: prompt.tools },
    tools,
    promptVersionKnown,
  }
}
