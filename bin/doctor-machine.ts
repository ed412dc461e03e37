/** The doctor's checks of this machine: Node, the HTTP edge, DATA_DIR, ports, mail. */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { createTransport } from 'nodemailer'
import { urlHost } from '../proxy/config.js'
import { loadUwebsockets } from '../proxy/http/load-uwebsockets.js'
import { withoutCredentials } from '../shared/config/without-credentials.js'
import { type Finding, good, note, problem, reasonOf } from './finding.js'
import { usablePort } from './ports.js'
import type { StartEnvironment } from './start-environment.js'

const MAIL_DEADLINES = {
  connectionTimeout: 3_000,
  greetingTimeout: 3_000,
  dnsTimeout: 3_000,
  socketTimeout: 5_000,
}
const LITTLE_DISK_BYTES = 1024 ** 3

export function checkNode(): Finding[] {
  const { node } = process.versions
  return [good(`Node.js ${node} on ${process.platform}-${process.arch}.`)]
}

/** @param forced PROXY_HTTP. */
export function checkEdge(forced: string | undefined): Finding[] {
  if (forced === 'node') return [note('PROXY_HTTP=node: the proxy serves with node:http.')]
  const unset = 'Set PROXY_HTTP=node, or install again with npm ci.'
  try {
    if (loadUwebsockets() !== null) return [good('The proxy serves with uWebSockets.js.')]
  } catch (error) {
    return [problem(reasonOf(error), unset)]
  }
  const missing = `There is no uWebSockets.js binary for Node.js ${process.versions.node} on this system.`
  if (forced === 'uwebsockets') return [problem(`PROXY_HTTP=uwebsockets, but: ${missing}`, unset)]
  return [
    note(`${missing} The proxy serves with node:http.`, 'It works the same and takes more CPU per call.'),
  ]
}

export function checkDataDir({ DATA_DIR, AGH_SECRET, DATABASE_URL }: StartEnvironment): Finding[] {
  const path = resolve(DATA_DIR)
  const existing = nearestFolder(path)
  try {
    accessSync(existing, constants.W_OK | constants.X_OK)
  } catch (error) {
    const advice = 'Set DATA_DIR to a directory that this user may write to.'
    return [
      problem(`DATA_DIR ${path} cannot be written to (${(error as NodeJS.ErrnoException).code}).`, advice),
    ]
  }
  const findings = [
    existing === path
      ? good(`DATA_DIR ${path} can be written to.`)
      : good(`DATA_DIR ${path} will be created.`),
  ]
  const { bavail, bsize } = statfsSync(existing)
  if (bavail * bsize < LITTLE_DISK_BYTES) {
    const left = Math.floor((bavail * bsize) / 1024 ** 2)
    findings.push(
      note(
        `Only ${left} MB of disk are free there.`,
        'Below 64 MB the proxy refuses calls: it could not keep their charges.',
      ),
    )
  }
  if (AGH_SECRET === undefined && !existsSync(join(path, 'secret'))) {
    findings.push(
      DATABASE_URL === undefined
        ? note('AGH_SECRET is unset; `agh start` makes one in DATA_DIR.')
        : note(
            'AGH_SECRET is unset.',
            '`agh start` makes one in DATA_DIR; `agh proxy` and `agh control-plane` need the same one set.',
          ),
    )
  }
  return findings
}

/** Up the path to what exists. */
function nearestFolder(path: string): string {
  if (statSync(path, { throwIfNoEntry: false }) !== undefined || dirname(path) === path) return path
  return nearestFolder(dirname(path))
}

/** A port is as it should be when it is free, or when agh itself answers on it. */
export async function checkPorts(env: StartEnvironment): Promise<Finding[]> {
  const listeners = [
    { name: 'proxy', variable: 'PORT', host: env.HOST, port: env.PORT },
    {
      name: 'control plane',
      variable: 'CONTROL_PLANE_PORT',
      host: env.CONTROL_PLANE_HOST,
      port: env.CONTROL_PLANE_PORT,
    },
  ]
  return Promise.all(
    listeners.map(async ({ name, variable, host, port }) => {
      try {
        await usablePort(variable, host, port)
        return good(`${host}:${port} is free for the ${name}.`)
      } catch (error) {
        return (await runningAt(name, host, port)) ?? problem(reasonOf(error), 'Then start again.')
      }
    }),
  )
}

async function runningAt(name: string, host: string, port: number): Promise<Finding | null> {
  const ask = (path: string) =>
    fetch(`http://${urlHost(host)}:${port}${path}`, { signal: AbortSignal.timeout(3000) })
  try {
    if ((await (await ask('/healthz')).text()) !== '{"status":"ok"}') return null
    const ready = await ask('/readyz')
    if (ready.ok) return good(`The ${name} runs at ${host}:${port} and is ready.`)
    const says = (await ready.text()).slice(0, 300)
    return problem(`The ${name} runs at ${host}:${port}, but is not ready: ${says}`, 'Mend what it names.')
  } catch {
    return null
  }
}

/** @param url SMTP_URL. The server is greeted, with the credentials when the URL has some; nothing is sent. */
export async function checkMail(url: string | undefined): Promise<Finding[]> {
  if (url === undefined || url === '')
    return [note('SMTP_URL is unset: mails are written to DATA_DIR/outbox.')]
  const { hostname } = new URL(url)
  const transport = createTransport({ url, ...MAIL_DEADLINES })
  try {
    await transport.verify()
    return [good(`Mail goes through ${hostname}, which takes agh's greeting.`)]
  } catch (error) {
    return [
      problem(
        `The mail server at ${withoutCredentials(url)} cannot be used: ${reasonOf(error)}.`,
        'Start it, or correct SMTP_URL; unset it to have mails written to DATA_DIR/outbox.',
      ),
    ]
  } finally {
    transport.close()
  }
}
