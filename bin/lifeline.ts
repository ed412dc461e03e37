/**
 * Loaded before a program that `agh start` runs (`--import`): when the other end of the IPC channel is gone, because
 * `agh start` was killed or crashed, the program drains and ends as if it had been told to.
 */
if (process.channel !== undefined) {
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  // The channel itself must not keep a drained program alive.
  process.channel.unref()
}
