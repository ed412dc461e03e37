/** What one check found. */
export interface Finding {
  /** A note is worth knowing; a problem keeps agh from working. */
  level: 'good' | 'note' | 'problem'
  text: string
  advice?: string
}

export const good = (text: string): Finding => ({ level: 'good', text })
export const note = (text: string, advice?: string): Finding => finding('note', text, advice)
export const problem = (text: string, advice: string): Finding => finding('problem', text, advice)

const finding = (level: Finding['level'], text: string, advice: string | undefined): Finding =>
  advice === undefined ? { level, text } : { level, text, advice }

/** An error's own words in one line; Node's errors of several addresses carry theirs inside. */
export function reasonOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return reasonOf(error.errors[0])
  const text = error instanceof Error ? error.message || error.name : String(error)
  return text.split('\n')[0] ?? text
}
