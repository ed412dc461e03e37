import { openLogFile } from './log-file.js'

/** pino's number for `warn`. */
const WARN = 40

/**
 * Where a program's output goes: every line into its log file, and to the terminal what a person should see, which is
 * warnings in one line each and whatever is not a log record; or every line as it is.
 */
export function lineWriter(name: string, path: string, everyLine: boolean): (line: string) => void {
  const file = openLogFile(path)
  return line => {
    file.write(line)
    const shown = everyLine ? line : forPeople(name, line)
    if (shown !== null) console.log(shown)
  }
}

function forPeople(name: string, line: string): string | null {
  const record = parsed(line)
  if (record === null) return `${name}: ${line}`
  if (Number(record.level) < WARN) return null
  const cause = record.err?.message === undefined ? '' : ` (${record.err.message})`
  return `${name}: ${record.msg ?? line}${cause}`
}

interface LogRecord {
  level?: unknown
  msg?: string
  err?: { message?: string }
}

function parsed(line: string): LogRecord | null {
  if (!line.startsWith('{')) return null
  try {
    return JSON.parse(line) as LogRecord
  } catch {
    return null
  }
}
