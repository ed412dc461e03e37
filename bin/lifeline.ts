/** Under `agh start`: a program whose parent is gone, killed or crashed, drains and ends as if it had been told to. */
export function endWithParent(): void {
  if (process.channel === undefined) return
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  // The channel itself must not keep a drained program alive.
  process.channel.unref()
}
