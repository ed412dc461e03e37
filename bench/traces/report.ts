import type { Findings } from './check.js'
import type { Ingestion } from './ingestion.js'
import type { Work } from './plans.js'
import type { Answer } from './questions.js'

export type Size = 'large' | 'small'

export interface Measured {
  question: string
  answers: Record<Size, Answer>
  /** null: the server's log is not ours to read. */
  work: Record<Size, Work> | null
}

/** Everything that was measured at one number of spans. */
export interface Stage {
  spans: number
  databaseMegabytes: number
  loadSpansPerSecond: number
  measured: Measured[]
  ingestion: Ingestion[]
  findings: Findings
}

export interface TracesReport {
  date: string
  machine: string
  node: string
  teams: Record<Size, { share: number }>
  stages: Stage[]
}

export function tables(report: TracesReport): string {
  const last = report.stages.at(-1)
  if (last === undefined) return ''
  const first = report.stages.length > 1 ? report.stages[0] : undefined
  return [
    `${report.date}, ${report.machine}, Node ${report.node}`,
    ...report.stages.map(stageLine),
    ingestionTable(report.stages),
    questionTable(last, first),
    refusals(last),
  ].join('\n\n')
}

const stageLine = ({ spans, databaseMegabytes, loadSpansPerSecond, findings }: Stage) =>
  `${millions(spans)} spans, database ${fixed(databaseMegabytes, 0)} MB, loaded at ${fixed(loadSpansPerSecond, 0)} spans/s; ` +
  `looked for: ${findings.lostOrDoubled} lost or doubled spans, ${findings.wrongTraces} wrong trace rows, ` +
  `${findings.wrongBuckets} wrong of ${findings.buckets} analytics buckets, ` +
  `percentiles within ${fixed(findings.percentileError * 100, 1)} %`

function ingestionTable(stages: readonly Stage[]): string {
  const header = [
    'into',
    'door',
    'spans/s',
    'CPU µs/span: control plane',
    'PostgreSQL',
    'request p95 ms',
    'told to wait',
  ]
  const lines = stages.flatMap(stage =>
    stage.ingestion.map(seen => [
      millions(stage.spans),
      seen.door,
      fixed(seen.spansPerSecond, 0),
      fixed(seen.controlPlaneMicroseconds, 1),
      fixed(seen.postgresMicroseconds, 1),
      fixed(seen.requestP95Ms, 0),
      String(seen.refused),
    ]),
  )
  return markdown(header, lines)
}

/**
 * Growth is of the large team's median: a p95 of some ten requests is too restless to divide by. Cold: nothing of the
 * answer is remembered, a value that nobody has asked for; the other figures are of a question that was asked before.
 */
function questionTable(last: Stage, first: Stage | undefined): string {
  const header = [
    'question',
    'matches, large team',
    'large p50 ms',
    'p95 ms',
    'cold p50',
    'p95',
    'small p50 ms',
    'p95 ms',
    'cold p95',
    'rows read, large',
    'small',
    'pages, large',
    'small',
    ...(first === undefined ? [] : [`p50 growth from ${millions(first.spans)}`, 'cold', 'rows growth']),
  ]
  const lines = last.measured.map(({ question, answers: { large, small }, work }) => {
    const before = first?.measured.find(one => one.question === question)
    return [
      question,
      large.total === null ? '' : String(large.total),
      fixed(large.p50Ms, 1),
      fixed(large.p95Ms, 1),
      coldOf(large, 'p50Ms'),
      coldOf(large, 'p95Ms'),
      fixed(small.p50Ms, 1),
      fixed(small.p95Ms, 1),
      coldOf(small, 'p95Ms'),
      fixed(work?.large.rowsRead, 0),
      fixed(work?.small.rowsRead, 0),
      fixed(work?.large.pages, 0),
      fixed(work?.small.pages, 0),
      ...(first === undefined
        ? []
        : [
            ratio(large.p50Ms, before?.answers.large.p50Ms),
            large.cold === null ? '' : ratio(large.cold.p50Ms, before?.answers.large.cold?.p50Ms),
            ratio(work?.large.rowsRead, before?.work?.large.rowsRead),
          ]),
    ]
  })
  return markdown(header, lines)
}

const coldOf = ({ cold }: Answer, figure: 'p50Ms' | 'p95Ms') => (cold === null ? '' : fixed(cold[figure], 1))

function refusals({ measured }: Stage): string {
  return measured
    .flatMap(({ question, answers }) => {
      const refusal = answers.large.refusal ?? answers.small.refusal
      return refusal === null ? [] : `${question}: ${refusal}`
    })
    .join('\n')
}

const markdown = (header: string[], lines: string[][]) =>
  [header, header.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |`).join('\n')

const millions = (count: number) =>
  count < 1e6 ? `${Math.round(count / 1e3)} k` : `${(count / 1e6).toFixed(1)} M`

const fixed = (value: number | null | undefined, digits: number) =>
  value === null || value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits)

const ratio = (now: number | undefined, before: number | undefined) =>
  now === undefined || before === undefined || before === 0 ? '–' : fixed(now / before, 2)
