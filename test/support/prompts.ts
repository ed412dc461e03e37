import { commitPromptVersion, createPrompt } from '../../shared/contract/prompts.js'
import { commitToolVersion, createTool } from '../../shared/contract/tools.js'
import type { ControlPlane, Credential } from './control-plane.js'

const greeting = [{ role: 'user', content: 'Hello {{ name }}' }]

/** A prompt with as many versions as there are templates, each one user message. */
export async function storedPrompt(
  cp: ControlPlane,
  as: Credential,
  { name = 'Greeter', templates = [] as string[] } = {},
): Promise<{ promptId: string; versionIds: string[] }> {
  const prompt = await cp.call(createPrompt, { as, body: { name } })
  const versionIds: string[] = []
  for (const content of templates) versionIds.push((await commit(cp, as, prompt.body.id, content)).id)
  return { promptId: prompt.body.id, versionIds }
}

/** Commits one user message. */
export async function commit(cp: ControlPlane, as: Credential, promptId: string, content?: string) {
  const messages = content === undefined ? greeting : [{ role: 'user', content }]
  return (await cp.call(commitPromptVersion, { as, params: { id: promptId }, body: { messages } })).body
}

/** A client tool with a number of versions, each described as `<name> v<number>`. @returns its id. */
export async function storedTool(
  cp: ControlPlane,
  as: Credential,
  name: string,
  versions = 1,
): Promise<string> {
  const { id } = (await cp.call(createTool, { as, body: { name } })).body
  for (let number = 1; number <= versions; number++) {
    const body = {
      description: `${name} v${number}`,
      parametersSchema: { type: 'object' },
      executor: { type: 'client' as const },
    }
    await cp.call(commitToolVersion, { as, params: { id }, body })
  }
  return id
}

/** The audit trail of one prompt, oldest first, read from its table. */
export async function trailOf(cp: ControlPlane, promptId: string) {
  return [
    ...(await cp.deps.sql<
      {
        event: string
        metadata: Record<string, unknown>
        actorId: string | null
        toolId: string | null
      }[]
    >`
      select event, metadata, actor_id, tool_id from audit_events
      where prompt_id = ${promptId} order by position`),
  ]
}
