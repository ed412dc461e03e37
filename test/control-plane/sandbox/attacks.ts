/**
 * JavaScript that tries to hang, crash or bloat the process, to leave the sandbox, or to bring something back out of it
 * (reliability notes, appendix C). Each is the source of a transform; most fail, some return a harmless value.
 */

const body = (statements: string) => `function transform(input) { ${statements} }`
const many = (count: number, text: string) => text.repeat(count)

const endless: Record<string, string> = {
  'a loop': body('for (;;) {}'),
  'a loop that catches its interruption': body('for (;;) { try { for (;;) {} } catch {} }'),
  'a loop in finally': body('try { for (;;) {} } finally { for (;;) {} }'),
  'a loop while it is defined': 'for (;;) {}',
  recursion: body('return transform(input)'),
  'catastrophic backtracking': body("return /^(a+)+$/.test('a'.repeat(40) + '!')"),
  'backtracking over two groups': body("return /(x+x+)+y/.test('x'.repeat(60))"),
  'an async loop': 'async function transform() { for (;;) await 0 }',
  'a promise that never settles': 'async function transform() { await new Promise(() => {}) }',
  'an endless generator': 'function* transform() { for (;;) yield 1 }',
  'Atomics.wait': body('Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9); return 1'),
  'finalizers that loop': body(
    'const r = new FinalizationRegistry(() => { for (;;) {} }); for (let i = 0; i < 1e4; i++) r.register({}); return 1',
  ),
}

/** Single built-ins that QuickJS's interrupt handler does not reach. */
const slowBuiltIns: Record<string, string> = {
  'a huge array as text': body("return new Array(1000000000) + ''"),
  'a huge join': body("return new Array(2 ** 32 - 1).join('')"),
  'indexOf in holes': body('const a = []; a.length = 4294967295; return a.indexOf(1)'),
  'sort of holes': body('const a = []; a.length = 1e8; a.sort(); return 1'),
  'joins in a loop': body("const a = new Array(1e6).fill('abc'); for (;;) a.join('').length"),
  'searches of a megabyte': body(
    "const s = 'a'.repeat(1 << 20) + 'b'; let n = 0; for (let i = 0; i < 1e6; i++) n += s.includes('aaaaaaaaaaac'); return n",
  ),
  'a power of big integers': body('return (2n ** 50000000n).toString().length'),
  'a product of big integers': body('const a = 3n ** 2000000n; return (a * a * a * a).toString().length'),
  'a typed array sorted': body('return new Uint8Array(1e7).fill(7).sort().reverse().length'),
  'a replacement that multiplies': body("return 'a'.repeat(1e6).replace(/a/g, '$&'.repeat(100)).length"),
  'four million pieces': body("return 'a'.repeat(4e6).split('').length"),
}

const memory: Record<string, string> = {
  'arrays of arrays': body('const a = []; for (;;) a.push(new Array(1e5).fill(1))'),
  'megabytes of text': body("const a = []; for (;;) a.push('x'.repeat(1 << 20))"),
  'a string that doubles': body("let s = 'x'; for (;;) s += s"),
  'typed arrays': body('const a = []; for (;;) a.push(new Uint8Array(1 << 20))'),
  'a padded string': body("return 'x'.padEnd(1 << 29).length"),
  'eight megabytes returned': body("return 'x'.repeat(8 << 20)"),
  'a deep value returned': body('let o = {}; for (let i = 0; i < 100000; i++) o = { o }; return o'),
  'deep JSON parsed': body("return JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))"),
  'brackets 20,000 deep': body(`return ${many(20_000, '[')}${many(20_000, ']')}`),
  'parentheses 20,000 deep': body(`return ${many(20_000, '(')}1${many(20_000, ')')}`),
  '70,000 variables': body(Array.from({ length: 70_000 }, (_, i) => `var a${i}=1`).join(';')),
}

const wayOut: Record<string, string> = {
  'a Function made of text': body(
    "return (() => {}).constructor('return typeof process + typeof require + typeof globalThis.std + typeof os')()",
  ),
  'eval of this': body(
    "return eval('typeof process') + typeof this.constructor.constructor('return this')().process",
  ),
  'a dynamic import': body("return import('fs')"),
  'a static import': "import fs from 'fs'; function transform() { return fs }",
  'a brace that closes too early': 'function transform() { return 1 } })(); globalThis.x = 1; (function () {',
  'a comment that never ends': 'function transform() { return 1 } /*',
  '__proto__ returned': body(
    `return JSON.parse('{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}')`,
  ),
  'patched JSON and prototypes': body(
    `Object.prototype.polluted = 1; JSON.parse = () => ({ pw: 1 }); JSON.stringify = () => '{"status":0}'; return {}`,
  ),
  'a stringify that loops': body('JSON.stringify = () => { for (;;) {} }; return {}'),
  'array text that throws': body('Array.prototype.toString = () => { throw 1 }; return [1]'),
}

const answers: Record<string, string> = {
  'a toJSON that loops': body('return { toJSON() { for (;;) {} } }'),
  'a getter that loops': body('return { get a() { for (;;) {} } }'),
  'a proxy that loops': body('return new Proxy({}, { ownKeys() { for (;;) {} } })'),
  'a thrown getter': body('throw { get message() { for (;;) {} } }'),
  'a thenable': body('return { then() { for (;;) {} } }'),
  'a thrown megabyte': body("throw new Error('x'.repeat(1 << 20))"),
  'a value that is no JSON': body('return () => 1'),
  'a cycle': body('const a = {}; a.a = a; return a'),
}

export const attacks: readonly [name: string, source: string][] = [
  endless,
  slowBuiltIns,
  memory,
  wayOut,
  answers,
].flatMap(group => Object.entries(group))
