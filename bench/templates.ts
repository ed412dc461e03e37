/**
 * `npm run bench -- templates`: what parsing and rendering a stored prompt costs, against nunjucks as it comes (which
 * compiles to JavaScript, unsafely). Targets: 77 B in under 2 µs, 15 KB with 200 variables in under 60 µs.
 */
import { createRequire } from 'node:module'
import { compilePrompt, renderPrompt } from '../shared/templates/render.js'
import { median } from './processes.js'
import { machine } from './report.js'

interface Nunjucks {
  Environment: new (loader: null, options: { autoescape: boolean }) => object
  Template: new (
    source: string,
    environment: object,
    path: string,
    eager: boolean,
  ) => { render(variables: object): string }
}

interface Subject {
  name: string
  template: string
  variables: Record<string, unknown>
  /** null: no target. */
  renderTargetUs: number | null
}

const { Environment, Template } = createRequire(import.meta.url)('nunjucks') as Nunjucks
const environment = new Environment(null, { autoescape: false })

const ROUNDS = 15
const ROUND_MS = 60
const WARM_UP = 2_000

export async function benchTemplates(): Promise<void> {
  console.log(`${machine()}, Node ${process.version}; µs of CPU, median (best) of ${ROUNDS} rounds\n`)
  console.log('| prompt | bytes | render | nunjucks renders | parse | nunjucks compiles | target |')
  console.log('|---|---|---|---|---|---|---|')
  for (const subject of subjects()) console.log(row(subject))
}

function row({ name, template, variables, renderTargetUs }: Subject): string {
  const messages = [{ role: 'system', content: template }]
  const prompt = compilePrompt(messages)
  const nunjucks = new Template(template, environment, 'prompt', true)
  const ours = renderPrompt(prompt, variables)[0]?.content
  if (ours !== nunjucks.render(variables)) throw new Error(`${name}: nunjucks renders something else`)
  // Measured with the text flat in memory, as a request needs it: appending alone leaves a rope.
  const render = cost(() => Buffer.byteLength(renderPrompt(prompt, variables)[0]?.content ?? ''))
  const theirs = cost(() => Buffer.byteLength(nunjucks.render(variables)))
  const parse = cost(() => compilePrompt(messages).variables.length)
  const compile = cost(() => new Template(template, environment, 'prompt', true) && 1)
  const target =
    renderTargetUs === null ? '' : `${renderTargetUs} ${render.best <= renderTargetUs ? 'met' : 'missed'}`
  const cells = [name, template.length, render, theirs, parse, compile, target].map(shown)
  return `| ${cells.join(' | ')} |`
}

interface Cost {
  median: number
  best: number
}

const shown = (cell: string | number | Cost) =>
  typeof cell === 'object' ? `${cell.median.toFixed(2)} (${cell.best.toFixed(2)})` : String(cell)

/** In µs of the processor, garbage collection included, so that a busy machine changes little. */
function cost(work: () => number): Cost {
  let sum = 0
  for (let at = 0; at < WARM_UP; at++) sum += work()
  const rounds = Array.from({ length: ROUNDS }, () => {
    const before = process.cpuUsage()
    const startedAt = performance.now()
    let times = 0
    while (performance.now() - startedAt < ROUND_MS) {
      for (let at = 0; at < 20; at++) sum += work()
      times += 20
    }
    const { user, system } = process.cpuUsage(before)
    return (user + system) / times
  })
  if (sum < 0) throw new Error('sizes are not negative')
  return { median: median(rounds), best: Math.min(...rounds) }
}

function subjects(): Subject[] {
  const paragraphs = Array.from({ length: 200 }, (_, at) => `${`Paragraph ${at} `.repeat(5)}{{ v${at} }}\n`)
  const values = paragraphs.map((_, at) => [`v${at}`, `value ${at}`] as const)
  const documents = Array.from({ length: 10 }, (_, at) => ({
    title: `T${at}`,
    year: 2000 + at,
    text: ' some text '.repeat(10),
  }))
  return [
    {
      name: 'three variables',
      template: 'You are {{ role }}. Answer {{ question }} in {{ lang | default("English") }}.',
      variables: { role: 'a helper', question: 'why?', lang: 'German' },
      renderTargetUs: 2,
    },
    {
      name: 'a loop over ten documents',
      template: DOCUMENTS.padEnd(900, ' filler'),
      variables: { role: 'x', docs: documents, user: { name: 'Ann', tone: 'warm' } },
      renderTargetUs: null,
    },
    {
      name: '200 variables',
      template: paragraphs.join(''),
      variables: Object.fromEntries(values),
      renderTargetUs: 60,
    },
    {
      name: 'no tags',
      template: Buffer.from('You are a helper. '.repeat(850)).toString(),
      variables: {},
      renderTargetUs: null,
    },
  ]
}

const DOCUMENTS = `System: {{ role }}
{% if docs %}Use these documents:
{% for d in docs %}[{{ loop.index }}] {{ d.title }} ({{ d.year }}): {{ d.text | trim }}
{% endfor %}{% else %}No documents.{% endif %}
{% set tone = user.tone or "plain" %}Tone: {{ tone | upper }}. Reply to {{ user.name }}.`
