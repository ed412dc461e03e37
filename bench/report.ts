import { cpus } from 'node:os'
import type { AddedLatency } from './latency.js'
import type { StreamCost } from './streams.js'
import type { Throughput } from './wrk.js'

export interface Row {
  name: string
  plain: Throughput
  /** The 100 KB request; null: not measured. */
  large: Throughput | null
  latency: AddedLatency | null
  idleMegabytes: number
  streams: StreamCost | null
}

export interface Report {
  date: string
  machine: string
  node: string
  rows: Row[]
}

export const machine = () => `${cpus().length} cores, ${cpus()[0]?.model ?? 'unknown CPU'}`

/** One Markdown table; ratios are to nginx in the same run, the only comparison that noise leaves standing. */
export function table({ date, machine, node, rows }: Report): string {
  const base = rows.find(row => row.name === 'nginx')?.plain.cpuMicroseconds ?? Number.NaN
  const header = [
    'subject',
    'CPU µs/request',
    '× nginx',
    'requests/s seen',
    'kilo-instructions (user)',
    'added p50 µs',
    'added p99 µs',
    'RSS idle MB',
    'RSS 1,000 streams MB',
    'core share',
    'CPU µs/chunk',
    '100 KB: CPU µs',
  ]
  const lines = rows.map(row => [
    row.name,
    fixed(row.plain.cpuMicroseconds, 1),
    fixed(row.plain.cpuMicroseconds / base, 2),
    fixed(row.plain.requestsPerSecond, 0),
    fixed(row.plain.userKiloInstructions, 0),
    fixed(row.latency?.addedP50Microseconds, 0),
    fixed(row.latency?.addedP99Microseconds, 0),
    fixed(row.idleMegabytes, 0),
    fixed(row.streams?.residentMegabytes, 0),
    row.streams ? `${fixed(row.streams.coreShare * 100, 0)} %` : '–',
    fixed(row.streams?.cpuMicrosecondsPerChunk, 1),
    fixed(row.large?.cpuMicroseconds, 0),
  ])
  const text = [header, header.map(() => '---'), ...lines].map(cells => `| ${cells.join(' | ')} |`).join('\n')
  return `${date}, ${machine}, Node ${node}\n\n${text}\n`
}

const fixed = (value: number | null | undefined, digits: number) =>
  value === null || value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits)
