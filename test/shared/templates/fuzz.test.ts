/** `TEST_SEED` gives other templates, `TEST_TEMPLATES` another number (100,000 is the standard before a release). */
import { test } from 'tap'
import { AppError } from '../../../shared/errors/app-error.js'
import { chance } from '../../faults/random.js'
import { RandomTemplate } from './random-template.js'
import { renderedAsJinja } from './rendering.js'

const SEED = Number(process.env.TEST_SEED ?? 1)
const TEMPLATES = Number(process.env.TEST_TEMPLATES ?? 20_000)
/** Of one template, all tries: rendering may take 50 ms, and a busy machine adds its own. */
const MOST_MS = 250

const variables = () => ({
  a: 'A',
  b: [1, 2, { c: 3 }],
  l: [3, 1, 2],
  d: { k: 'v', n: { m: 1 } },
  s: 'abc def',
  constructor: 'mine',
})

test(`${TEMPLATES} random templates run no code, leak nothing and fail only as templates do`, async t => {
  const random = new RandomTemplate(chance(SEED))
  const called: string[] = []
  const RealFunction = globalThis.Function
  globalThis.Function = new Proxy(RealFunction, {
    apply: () => called.push('called'),
    construct: () => ({ called: called.push('constructed') }),
  })
  const before = Reflect.ownKeys(Object.prototype).concat(Reflect.ownKeys(globalThis))
  const given = JSON.stringify(variables())
  const counts = { rendered: 0, parse: 0, render: 0 }
  const slow: string[] = []
  let worstMs = 0
  try {
    for (let at = 0; at < TEMPLATES; at++) {
      const template = random.text(3)
      const own = variables()
      const startedAt = performance.now()
      try {
        const output = renderedAsJinja(template, own)
        counts.rendered++
        if (/\[native code\]|\[object|=>|\bfunction\b/.test(output)) t.fail(`a leak: ${template}`)
      } catch (error) {
        if (!(error instanceof AppError)) t.fail(`${String(error)}: ${template}`)
        else if (error.code === 'TEMPLATE_PARSE_ERROR') counts.parse++
        else if (error.code === 'TEMPLATE_RENDER_ERROR') counts.render++
        else t.fail(`${error.code}: ${template}`)
      }
      const ms = performance.now() - startedAt
      worstMs = Math.max(worstMs, ms)
      if (ms > MOST_MS) slow.push(template)
      if (JSON.stringify(own) !== given) t.fail(`the variables were changed: ${template}`)
    }
  } finally {
    globalThis.Function = RealFunction
  }
  t.comment({ seed: SEED, ...counts, worstMs })
  t.same(called, [], 'Function was never called')
  t.same(Reflect.ownKeys(Object.prototype).concat(Reflect.ownKeys(globalThis)), before)
  t.same(
    slow.filter(template => isSlow(template)),
    [],
  )
  t.ok(counts.rendered > TEMPLATES / 10, 'enough of them render to mean something')
})

/** Again, alone: what a busy machine added does not repeat. */
function isSlow(template: string): boolean {
  const startedAt = performance.now()
  try {
    renderedAsJinja(template, variables())
  } catch {
    // Refused; how long that took is the question.
  }
  return performance.now() - startedAt > MOST_MS
}

test('whatever is cut out of a template that parses is rendered or refused, never a crash', async t => {
  const whole =
    'Hi {{ a | default("x\\n") }}{% for k, v in d.items() if v %}{{ loop.index }}: {{ k ~ v[0:2] }}{% else %}-{% endfor %}' +
    '{#- note -#}{% set x %}{{ "%s" % (l | sort | join(", ")) }}{% endset %}{% raw %}{{ raw }}{% endraw %}{{ x if s else 1.5 }}'
  for (let from = 0; from < whole.length; from++) {
    for (let to = from; to <= whole.length; to += 3) {
      const template = whole.slice(0, from) + whole.slice(to)
      try {
        renderedAsJinja(template, variables())
      } catch (error) {
        if (!(error instanceof AppError)) t.fail(`${String(error)}: ${template}`)
      }
    }
  }
})
