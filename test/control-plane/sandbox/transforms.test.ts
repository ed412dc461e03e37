import { type Test, test } from 'tap'
import { createSandbox } from '../../../control-plane/sandbox/create-sandbox.js'
import type { Sandbox } from '../../../control-plane/sandbox/sandbox.js'

/** Generous clocks: what these promise has nothing to do with time. */
function sandboxOf(t: Test, settings: Parameters<typeof createSandbox>[0] = {}): Sandbox {
  const sandbox = createSandbox({ interruptMs: 1_000, wallMs: 5_000, ...settings })
  t.teardown(() => sandbox.close())
  return sandbox
}

const ok = (value: unknown) => ({ ok: true, value })
const refused = (message: string) => ({ ok: false, message })

test('a transform gets JSON and returns JSON', async t => {
  const sandbox = sandboxOf(t)
  const run = (source: string, input: unknown = { a: [1, 'two', null] }) =>
    sandbox.runTransform(source, input)
  t.same(
    await run('function transform(x) { return { got: x.a, n: x.a.length } }'),
    ok({ got: [1, 'two', null], n: 3 }),
  )
  t.same(await run('function transform() {}'), ok(null), 'nothing is null')
  t.same(await run('function transform() { return NaN }'), ok(null))
  t.same(await run('function transform() { return "ä€😀" }'), ok('ä€😀'))
  t.same(
    await run('function transform(x) { return Array.isArray(x.a) && x.constructor === Object }'),
    ok(true),
  )
})

test('a function named transform counts however it is defined at the top level', async t => {
  const sandbox = sandboxOf(t)
  const definitions = [
    'function transform(x) { return x }',
    'const transform = x => x',
    'let transform = function (x) { return x }',
    'var helper = x => x; var transform = helper',
    '"use strict"; class A {}; function transform(x) { return x }',
  ]
  for (const source of definitions) {
    t.same(await sandbox.checkTransform(source), ok(null), source)
    t.same(await sandbox.runTransform(source, 7), ok(7), source)
  }
})

test('a source that does not define a function named transform is refused', async t => {
  const sandbox = sandboxOf(t)
  const missing = refused('It must define a function named transform.')
  const special = refused('transform must be a plain function: not async, not a generator.')
  t.same(await sandbox.checkTransform(''), missing)
  t.same(await sandbox.checkTransform('function other() {}'), missing)
  t.same(await sandbox.checkTransform('(function transform() {})'), missing)
  t.same(await sandbox.checkTransform('const transform = 5'), missing)
  t.same(await sandbox.checkTransform('async function transform() {}'), special)
  t.same(await sandbox.checkTransform('function* transform() {}'), special)
  for (const source of ['function transform( {', 'return 1', 'export function transform() {}', '}']) {
    const verdict = await sandbox.checkTransform(source)
    t.match(verdict, { ok: false, message: /^SyntaxError: .+ \(line 1\)/ }, source)
  }
  t.match(await sandbox.checkTransform('\n\nfunction transform() { let 1 }'), { message: /\(line 3\)/ })
  t.same(await sandbox.checkTransform(`//${'x'.repeat(65_536)}`), refused('The source is longer than 64 KB.'))
})

test('checking a source runs none of its transform', async t => {
  const sandbox = sandboxOf(t)
  t.same(await sandbox.checkTransform('function transform() { throw new Error("run") }'), ok(null))
})

test('one call leaves nothing for the next', async t => {
  const sandbox = sandboxOf(t, { size: 1 })
  const leave =
    'globalThis.left = 1; Object.prototype.left = 1; JSON.parse = null; function transform() { return 1 }'
  t.same(await sandbox.runTransform(leave, null), ok(1))
  const look = 'function transform() { return [typeof left, typeof ({}).left, typeof JSON.parse] }'
  t.same(await sandbox.runTransform(look, null), ok(['undefined', 'undefined', 'function']))
})

test('there is no I/O, no clock to wait on, nothing of Node', async t => {
  const sandbox = sandboxOf(t)
  const names =
    'process require module Buffer fetch XMLHttpRequest setTimeout setInterval queueMicrotask std os print console WebAssembly Worker'
  const source = `function transform() { return ${JSON.stringify(names.split(' '))}.filter(n => typeof globalThis[n] !== 'undefined') }`
  t.same((await sandbox.runTransform(source, null)) as unknown, ok([]))
})

test('only the message of an error leaves', async t => {
  const sandbox = sandboxOf(t)
  const thrown = async (what: string) => sandbox.runTransform(`function transform() { throw ${what} }`, null)
  t.same(await thrown('new Error("no rows")'), refused('no rows'))
  t.same(await thrown('new RangeError("too far")'), refused('RangeError: too far'))
  t.same(await thrown('"just text"'), refused('just text'))
  t.same(await thrown('Object.assign(new Error("m"), { data: "x".repeat(9e5) })'), refused('m'))
  t.same(await thrown('{}'), refused('It threw a value that is not an error.'))
  t.same(await thrown('null'), refused('It threw a value that is not an error.'))
  t.same(await thrown('new Error("x".repeat(5000))'), refused('x'.repeat(300)))
})

test('what comes back has no __proto__ and is nested at most 64 levels', async t => {
  const sandbox = sandboxOf(t)
  const proto = `function transform() { return JSON.parse('{"__proto__":{"admin":true},"a":{"__proto__":1,"b":2}}') }`
  const verdict = await sandbox.runTransform(proto, null)
  t.same(verdict, ok({ a: { b: 2 } }))
  t.notOk(verdict.ok && Object.hasOwn(verdict.value as object, '__proto__'))
  const nested = (levels: number) =>
    sandbox.runTransform(
      `function transform() { let v = 1; for (let i = 0; i < ${levels}; i++) v = [v]; return v }`,
      null,
    )
  t.equal((await nested(64)).ok, true)
  t.same(await nested(65), refused('It is nested deeper than 64 levels.'))
})

test('more than a megabyte comes neither out nor, above four, in', async t => {
  const sandbox = sandboxOf(t)
  const out = (units: number) =>
    sandbox.runTransform(`function transform() { return 'x'.repeat(${units}) }`, null)
  t.equal((await out(1_048_574)).ok, true)
  t.same(await out(1_048_575), refused('transform returned more than 1 MB.'))
  const identity = 'function transform(x) { return x.length }'
  t.same(await sandbox.runTransform(identity, 'x'.repeat(1_000_000)), ok(1_000_000))
  t.same(
    await sandbox.runTransform(identity, 'x'.repeat(4_194_304)),
    refused('The input is longer than 4 MB.'),
  )
})
