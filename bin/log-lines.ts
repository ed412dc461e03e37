import { openLogFile } from './log-file.js'

/** pino's number for `warn`. */
const WARN = 40

/**
 * A program's line as a person should see it: warnings and worse in short, what is not a log record as it is; null for
 * the rest.
 */
export function readable(name: string, line: string): string | null {
  const record = parsed(line)
  if (record === null) return `${name}: ${line}`
  if (Number(record.level) < WARN) return null
  const cause = record.err?.message ?? record.error?.message
  return `${name}: ${record.msg ?? line}${cause === undefined ? '' : ` (${cause})`}`
}

/** Every line goes into the log file; to the terminal goes what `show` makes of it. */
export function lineWriter(path: string, show: (line: string) => string | null): (line: string) => void {
  const file = openLogFile(path)
  return line => {
    file.write(line)
    const shown = show(line)
    if (shown !== null) console.log(shown)
  }
}

interface LogRecord {
  level?: unknown
  msg?: string
  err?: { message?: string }
  error?: { message?: string }
}

function parsed(line: string): LogRecord | null {
  if (!line.startsWith('{')) return null
  try {
    return JSON.parse(line) as LogRecord
  } catch {
    return null
  }
}
