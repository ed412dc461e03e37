/** nunjucks as a second opinion: what it understands as Jinja does, templates here print alike. */
import { createRequire } from 'node:module'
import { test } from 'tap'
import { renderedAsJinja } from './rendering.js'

interface Nunjucks {
  Environment: new (
    loader: null,
    options: { autoescape: boolean },
  ) => { renderString(template: string, variables: object): string }
}

const nunjucks = createRequire(import.meta.url)('nunjucks') as Nunjucks
const environment = new nunjucks.Environment(null, { autoescape: false })

const variables = {
  role: 'a helper',
  question: 'why?',
  docs: [
    { title: 'A', year: 2001, text: ' one ' },
    { title: 'B', year: 2002, text: ' two ' },
  ],
  user: { name: 'Ann', tone: '' },
  numbers: [3, 1, 2],
}

const templates = [
  'You are {{ role }}. Answer {{ question }} in {{ lang | default("English") }}.',
  '{% for d in docs %}[{{ loop.index }}] {{ d.title }} ({{ d.year }}): {{ d.text | trim }}\n{% else %}none{% endfor %}',
  '{% if user.tone %}{{ user.tone }}{% elif user.name == "Ann" %}plain{% else %}?{% endif %}',
  '{% set tone = user.tone or "plain" %}Tone: {{ tone | upper }}{{ tone | capitalize }}{{ tone | title }}',
  'a {%- if role -%} b {%- endif %} c {#- note -#} d',
  '{% raw %}{{ role }}{% endraw %} {{ "{{" }} {{ numbers | sort | join(", ") }} {{ numbers | length }}',
  '{{ 1 + 2 * 3 }} {{ (1 + 2) * 3 }} {{ 7 // 2 }} {{ 7 % 3 }} {{ 2 ** 3 }} {{ 1 if role else 2 }}',
  '{{ numbers[0] ~ "-" ~ numbers[1] }} {{ user["name"] }} {{ docs[1].title | lower }}',
  '{{ "x" if "A" in role else "y" }} {{ role is defined and lang is undefined and "both" }}',
  '{% for d in docs %}{{ d.title }}{% if not loop.last %}, {% endif %}{% endfor %}',
  '{% for x in numbers | sort | reverse %}{{ x }}{{ loop.revindex }}{{ loop.first and "f" or "" }}{% endfor %}',
  '{{ "a,b" | replace(",", ";") }} {{ role | length }} {{ "%" }} {{ numbers | first }}{{ numbers | last }}',
]

test('nunjucks and templates here agree where nunjucks agrees with Jinja', async t => {
  for (const template of templates) {
    t.equal(renderedAsJinja(template, variables), environment.renderString(template, variables), template)
  }
})
