import type { FirstStart } from './first-start.js'

interface Where {
  origin: string
  dataDir: string
}

/** What `agh start` prints when everything runs: where things are, and on a first start the secrets, once. */
export function banner({ origin, dataDir }: Where, first: FirstStart | null): string {
  const lines = [
    '',
    'agh is running.',
    '',
    `  Gateway        ${origin}/api/v1/gateway   (the base URL for OpenAI clients)`,
    `  API reference  ${origin}/docs`,
    `  Data           ${dataDir}   (logs in ${dataDir}/logs)`,
    '',
  ]
  if (first === null) lines.push('Keys and data of the earlier start are in place.', '')
  else lines.push(...firstSteps(origin, first))
  return [...lines, 'Ctrl-C stops everything.'].join('\n')
}

function firstSteps(origin: string, first: FirstStart): string[] {
  const secrets = [
    'This is the first start. The following is shown once; keep it.',
    '',
    `  Owner          ${first.email}`,
    `  Password       ${first.password}`,
    `  API key        ${first.apiKey}   (yours: manages the team, reads traces)`,
    `  Virtual key    ${first.virtualKey}   (for applications: calls models)`,
    '',
  ]
  const model = first.models[0]
  if (model === undefined) {
    return [...secrets, 'There is no model yet: PROVIDER_PRIVATE_HOSTS=deny rules the demo provider out.', '']
  }
  return [
    ...secrets,
    ...(first.models.length > 1 ? [`Models: ${first.models.join(', ')}`, ''] : []),
    'A completion:',
    '',
    ...completion(origin, first.virtualKey, { model }),
    '',
    'The same, streamed:',
    '',
    ...completion(origin, first.virtualKey, { model, stream: true }),
    '',
    'Their traces, with cost:',
    '',
    `curl ${origin}/api/v1/traces \\`,
    `  -H "Authorization: Bearer ${first.apiKey}"`,
    '',
  ]
}

function completion(origin: string, key: string, body: { model: string; stream?: true }): string[] {
  const said = { ...body, messages: [{ role: 'user', content: 'Hello' }] }
  return [
    `curl ${body.stream ? '-N ' : ''}${origin}/api/v1/gateway/chat/completions \\`,
    `  -H "Authorization: Bearer ${key}" \\`,
    '  -H "Content-Type: application/json" \\',
    `  -d '${JSON.stringify(said)}'`,
  ]
}
