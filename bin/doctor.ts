/**
 * `agh doctor`: looks at everything that agh needs, and says in words what is wrong and what to do about it. It changes
 * nothing, calls no provider, and ends with code 1 when something would keep agh from working.
 */
import { ConfigError } from '../shared/config/environment.js'
import { checkDatabase } from './doctor-database.js'
import { checkDataDir, checkEdge, checkMail, checkNode, checkPorts } from './doctor-machine.js'
import { checkRedis } from './doctor-redis.js'
import { type Finding, good, problem } from './finding.js'
import { programEnvironment, readStartEnvironment, type StartEnvironment } from './start-environment.js'

const marks = { good: 'ok     ', note: 'note   ', problem: 'PROBLEM' }

async function doctor(): Promise<boolean> {
  const findings: Finding[] = []
  const report = (found: readonly Finding[]) => {
    for (const finding of found) {
      findings.push(finding)
      console.log(`${marks[finding.level]}  ${finding.text}`)
      if (finding.advice !== undefined) console.log(`         ${finding.advice}`)
    }
  }
  report(checkNode())
  const env = configuration(report)
  if (env !== null) {
    report(checkEdge(process.env.PROXY_HTTP))
    report(checkDataDir(env))
    report(await checkPorts(env))
    report(await checkDatabase(env))
    report(await checkRedis(env.REDIS_URL))
    report(await checkMail(process.env.SMTP_URL))
  }
  const problems = findings.filter(finding => finding.level === 'problem').length
  console.log(problems === 0 ? '\nNothing is wrong.' : `\n${problems} problem${problems > 1 ? 's' : ''}.`)
  return problems === 0
}

/** @returns null when a variable is wrong: the checks that need them make no sense then. */
function configuration(report: (found: readonly Finding[]) => void): StartEnvironment | null {
  try {
    const env = readStartEnvironment(process.env)
    // The variables that only one program reads.
    programEnvironment(process.env, {
      DATABASE_URL: env.DATABASE_URL ?? 'postgres://127.0.0.1/agh',
      AGH_SECRET: env.AGH_SECRET ?? 'x'.repeat(32),
      DATA_DIR: env.DATA_DIR,
      PORT: env.PORT,
      CONTROL_PLANE_PORT: env.CONTROL_PLANE_PORT,
    })
    report([good('The environment variables are valid.')])
    return env
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    report([problem(error.message, 'Correct the variable; README.md lists them all.')])
    return null
  }
}

// Drivers may keep a timer; the answer is out.
process.exit((await doctor()) ? 0 : 1)
