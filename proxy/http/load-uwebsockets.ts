import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { setNativeHeaderLimit } from './config.js'

/**
 * The part of uWebSockets.js that this program uses: only what the builds for Node 20 (of January 2024) and for newer
 * Node versions both have. https://unetworking.github.io/uWebSockets.js/generated/
 */
export interface Uws {
  App(): UwsApp
  us_listen_socket_close(socket: object): void
  us_socket_local_port(socket: object): number
  LIBUS_LISTEN_EXCLUSIVE_PORT: number
  _cfg?(word: string): void
}

export interface UwsApp {
  any(pattern: string, handler: (res: UwsResponse, req: UwsRequest) => void): UwsApp
  listen(host: string, port: number, options: number, listening: (socket: object | false) => void): UwsApp
  close(): UwsApp
}

/** Dead once the handler has returned. */
export interface UwsRequest {
  getCaseSensitiveMethod(): string
  getUrl(): string
  getQuery(): string | undefined
  forEach(visit: (name: string, value: string) => void): void
}

/** Dead once the reply has ended or the client is gone: every call throws then. */
export interface UwsResponse {
  writeStatus(line: string): UwsResponse
  writeHeader(name: string, value: string | Uint8Array): UwsResponse
  write(chunk: string | Uint8Array): boolean
  end(body?: string | Uint8Array, closeConnection?: boolean): UwsResponse
  endWithoutBody(reportedLength?: number, closeConnection?: boolean): UwsResponse
  close(): UwsResponse
  onWritable(listener: (offset: number) => boolean): UwsResponse
  onAborted(listener: () => void): UwsResponse
  onData(listener: (piece: ArrayBuffer, last: boolean) => void): UwsResponse
  pause(): void
  resume(): void
  getRemoteAddressAsText(): ArrayBuffer
  cork(write: () => void): UwsResponse
}

/**
 * SHA-256 of the native binary per platform, architecture and ABI. The package is an unofficial copy of upstream's
 * builds without an attestation; the lockfile pins the package, and this pins the code that runs.
 */
const knownBinaries: Record<string, string> = {
  linux_x64_115: 'f4fa5d7b697529b45ac8aa3d57385d9af51bc1d2b26aa9f5b68ca4361542e665',
}

/** The binary is there, but it is not the one this program was tested with. */
export class ForeignBinary extends Error {}

/**
 * @returns null where there is no binary for this platform (Alpine, older glibc, newer Node).
 * @throws ForeignBinary when there is one whose checksum is another.
 */
export function loadUwebsockets(known: Record<string, string> = knownBinaries): Uws | null {
  const require = createRequire(import.meta.url)
  const name = `${process.platform}_${process.arch}_${process.versions.modules}`
  try {
    const binary = join(dirname(require.resolve('uWebSockets.js')), `uws_${name}.node`)
    const expected = known[name]
    if (expected !== undefined) verify(binary, expected)
    setNativeHeaderLimit()
    const uws = require('uWebSockets.js') as Uws
    // Drops the header `uWebSockets: 20` from every reply.
    uws._cfg?.('silent')
    return uws
  } catch (error) {
    if (error instanceof ForeignBinary) throw error
    return null
  }
}

function verify(binary: string, expected: string): void {
  const found = createHash('sha256').update(readFileSync(binary)).digest('hex')
  if (found === expected) return
  throw new ForeignBinary(
    `${binary} has the SHA-256 ${found}, expected ${expected}. Install again with npm ci, or set PROXY_HTTP=node to serve with node:http.`,
  )
}
