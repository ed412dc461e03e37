import { test } from 'tap'
import { parseCall } from '../../../proxy/chat/parse.js'
import { AppError } from '../../../shared/errors/app-error.js'

const messages = [{ role: 'user', content: 'hi' }]
const parse = (body: object) => parseCall(Buffer.from(JSON.stringify(body)))

function message(body: object): string {
  try {
    parse(body)
  } catch (error) {
    if (error instanceof AppError && error.code === 'VALIDATION_ERROR') return error.message
    throw error
  }
  return 'accepted'
}

test('a stored prompt stands for the messages and may choose the model', async t => {
  const call = parse({ prompt: { name: 'greet', variables: { who: 'Ada' } } })
  t.same(call.stored, {
    prompt: { name: 'greet', alias: 'production', variables: { who: 'Ada' } },
    tools: [],
    promptVersionId: null,
    variables: null,
  })
  t.equal(call.model, null)
  t.equal(parse({ model: 'm', prompt: { name: 'greet' } }).model, 'm', 'an explicit model wins')
})

test('prompt and messages together answer 400, wrong types with their path', async t => {
  t.equal(message({ prompt: { name: 'x' }, messages }), 'Provide either prompt or messages, not both.')
  t.equal(message({ prompt: 'x' }), 'Expected object, received string')
  t.equal(message({ prompt: {} }), 'prompt.name: Required')
  t.equal(message({ prompt: { name: 1 } }), 'prompt.name: Expected string, received number')
  t.equal(message({ prompt: { name: 'x', alias: [] } }), 'prompt.alias: Expected string, received array')
  t.equal(
    message({ prompt: { name: 'x', variables: 'a' } }),
    'prompt.variables: Expected object, received string',
  )
  t.equal(message({ prompt: null, model: 'm' }), 'Required', 'null is unset')
})

test('a tool reference has an alias, production by default, or a version, never both', async t => {
  const refs = [{ name: 'a' }, { name: 'b', alias: 'staging' }, { name: 'c', version: 3 }]
  t.same(parse({ model: 'm', messages, tool_refs: refs }).stored?.tools, [
    { name: 'a', alias: 'production', version: null },
    { name: 'b', alias: 'staging', version: null },
    { name: 'c', alias: null, version: 3 },
  ])
  const wrong = (ref: unknown) => message({ model: 'm', messages, tool_refs: [ref] })
  t.equal(
    wrong({ name: 'a', alias: 'x', version: 1 }),
    'tool_refs.0: Provide either alias or version, not both.',
  )
  t.equal(wrong({}), 'tool_refs.0.name: Required')
  t.equal(wrong('a'), 'tool_refs.0: Expected object, received string')
  t.equal(wrong(null), 'tool_refs.0: Expected object, received null')
  t.equal(wrong({ name: 'a', version: 1.5 }), 'tool_refs.0.version: Expected integer, received float')
  t.equal(wrong({ name: 'a', version: 0 }), 'tool_refs.0.version: Number must be greater than or equal to 1')
  t.match(wrong({ name: 'a', version: 3e9 }), /less than or equal to 2147483647/)
  t.equal(message({ model: 'm', messages, tool_refs: {} }), 'Expected array, received object')
  t.match(message({ model: 'm', messages, tool_refs: Array(129).fill({ name: 'a' }) }), /at most 128/)
})

test('a name longer than any is refused before anybody is asked for it', async t => {
  const long = 'n'.repeat(201)
  const refused = 'String must contain at most 200 character(s)'
  t.equal(message({ model: 'm', prompt: { name: long } }), `prompt.name: ${refused}`)
  t.equal(message({ model: 'm', prompt: { name: 'x', alias: long } }), `prompt.alias: ${refused}`)
  const refs = (ref: object) => message({ model: 'm', messages, tool_refs: [ref] })
  t.equal(refs({ name: long }), `tool_refs.0.name: ${refused}`)
  t.equal(refs({ name: 'x', alias: long }), `tool_refs.0.alias: ${refused}`)
  t.equal(message({ model: 'm', prompt: { name: 'n'.repeat(200) } }), 'accepted')
})

test('prompt_version_id brings its variables, and is ignored beside prompt', async t => {
  const call = parse({ model: 'm', messages, prompt_version_id: 'v', variables: { a: 1 } })
  t.same(call.stored, { prompt: null, tools: [], promptVersionId: 'v', variables: { a: 1 } })
  t.same(parse({ prompt: { name: 'p' }, prompt_version_id: 7, variables: 'x' }).stored, {
    prompt: { name: 'p', alias: 'production', variables: {} },
    tools: [],
    promptVersionId: null,
    variables: null,
  })
  t.equal(message({ model: 'm', messages, prompt_version_id: 7 }), 'Expected string, received number')
})

test('a call that names nothing stored has nothing to be resolved', async t => {
  for (const fields of [{}, { tool_refs: [] }, { prompt_version_id: null }, { variables: { a: 1 } }]) {
    t.equal(parse({ model: 'm', messages, ...fields }).stored, null)
  }
})
