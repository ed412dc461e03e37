import type { ControlPlaneClient } from './control-plane-client.js'
import type { Deps } from './deps.js'

const PROBE_MS = 1_000

/**
 * Names each dependency that cannot be reached (spec 4, section 1). Probes run together, each with its own limit, so a
 * frozen one costs a second and not the prober's patience.
 */
export async function missingDependencies(
  { ledger, spool }: Pick<Deps, 'ledger' | 'spool'>,
  client: Pick<ControlPlaneClient, 'ping'>,
): Promise<string[]> {
  const probes: Record<string, () => Promise<void>> = {
    ledger: () => ledger.ping(),
    control_plane: () => client.ping(),
    spool: async () => {
      if (spool.full) throw new Error('The disk is nearly full.')
    },
  }
  const results = await Promise.all(
    Object.entries(probes).map(async ([name, probe]) => ((await answers(probe)) ? null : name)),
  )
  return results.filter(name => name !== null)
}

async function answers(probe: () => Promise<void>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<boolean>(resolve => {
    timer = setTimeout(resolve, PROBE_MS, false)
  })
  const answered = probe().then(
    () => true,
    () => false,
  )
  const inTime = await Promise.race([answered, late])
  clearTimeout(timer)
  return inTime
}
