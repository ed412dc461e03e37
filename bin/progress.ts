/** Runs one step of the start; a step that takes more than a second shows a line (spec 4, section 1). */
export async function step<T>(label: string, work: () => Promise<T> | T): Promise<T> {
  const startedAt = Date.now()
  let shown = false
  const timer = setTimeout(() => {
    shown = true
    console.log(`${label} ...`)
  }, 1000)
  try {
    return await work()
  } finally {
    clearTimeout(timer)
    const seconds = (Date.now() - startedAt) / 1000
    // Work that blocked the loop, such as initdb, had no chance to show its line in time.
    if (shown || seconds > 1) console.log(`${label} took ${seconds.toFixed(1)} s.`)
  }
}
