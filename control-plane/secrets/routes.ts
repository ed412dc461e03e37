import type { FastifyInstance } from 'fastify'
import { deleteSecret, listSecrets, setSecret } from '../../shared/contract/secrets.js'
import type { Deps } from '../deps.js'
import { route } from '../http/route.js'
import { listSecretRows, type SecretRow } from './queries.js'
import { removeSecret, storeSecret } from './secrets.js'

/** Team secrets (spec 4, section 4). */
export function registerSecrets(app: FastifyInstance, deps: Deps): void {
  route(app, deps, setSecret, async ({ params, body, principal }) =>
    shown(await storeSecret(deps, principal, params.name, body.value)),
  )

  route(app, deps, listSecrets, async ({ principal }) => {
    const rows = await listSecretRows(deps.sql, principal.teamId)
    return rows.map(shown)
  })

  route(app, deps, deleteSecret, async ({ params, principal }) => {
    await removeSecret(deps, principal, params.name)
    return undefined
  })
}

const shown = (row: SecretRow) => ({ name: row.name, updatedAt: row.updatedAt.toISOString() })
