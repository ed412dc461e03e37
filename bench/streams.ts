import { connect, type Socket } from 'node:net'
import { cpuMicroseconds, residentMegabytes, sleep } from './processes.js'
import type { Subject } from './subjects.js'

export interface StreamCost {
  /** CPU of the subject per chunk passed on, µs. */
  cpuMicrosecondsPerChunk: number
  chunksPerSecond: number
  /** Share of one core that the subject used. */
  coreShare: number
  residentMegabytes: number
}

/** The upstream's pace: one chunk each 50 ms a stream. */
const CHUNK_GAP_MS = 50

/** Holds many slow streams open and measures the subject while all of them run. */
export async function slowStreams(subject: Subject, streams: number, seconds: number): Promise<StreamCost> {
  const seen = { bytes: 0, ended: 0 }
  const sockets: Socket[] = []
  for (let opened = 0; opened < streams; opened++) {
    sockets.push(open(subject, seen))
    // A thousand connections in one turn would overflow the listen queue.
    if (opened % 50 === 49) await sleep(20)
  }
  await sleep(1_500)
  const pids = subject.pids()
  const [cpuBefore, startedAt] = [cpuMicroseconds(pids), performance.now()]
  await sleep(seconds * 1000)
  const elapsedMs = performance.now() - startedAt
  const used = cpuMicroseconds(pids) - cpuBefore
  const memory = residentMegabytes(pids)
  for (const socket of sockets) socket.destroy()
  if (seen.ended > 0) throw new Error(`${subject.name}: ${seen.ended} of ${streams} streams ended early`)
  const chunks = (streams * elapsedMs) / CHUNK_GAP_MS
  return {
    cpuMicrosecondsPerChunk: used / chunks,
    chunksPerSecond: (chunks / elapsedMs) * 1000,
    coreShare: used / (elapsedMs * 1000),
    residentMegabytes: memory,
  }
}

function open(subject: Subject, seen: { bytes: number; ended: number }): Socket {
  const body = JSON.stringify({
    model: subject.streamModel,
    stream: true,
    max_tokens: 512,
    messages: [{ role: 'user', content: 'Count slowly.' }],
  })
  const headers = {
    'content-type': 'application/json',
    'content-length': String(body.length),
    ...subject.headers,
  }
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect(subject.port, '127.0.0.1')
  socket.on('data', chunk => {
    seen.bytes += chunk.length
  })
  const early = () => {
    if (!socket.destroyed) seen.ended++
  }
  socket.once('end', early)
  socket.once('error', early)
  socket.write(`POST ${subject.streamPath} HTTP/1.1\r\nhost: bench\r\n${lines.join('')}\r\n${body}`)
  return socket
}
