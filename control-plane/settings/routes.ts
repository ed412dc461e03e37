import type { FastifyInstance } from 'fastify'
import { readTraceSettings, updateTraceSettings } from '../../shared/contract/settings.js'
import { notFound } from '../../shared/errors/app-error.js'
import { changedFields } from '../audit/changed-fields.js'
import { record } from '../audit/record.js'
import type { Deps } from '../deps.js'
import { changeTeam } from '../gateway/publish.js'
import { route } from '../http/route.js'
import { changeTraceSettings, findTraceSettings, lockTraceSettings } from './queries.js'

export function registerTraceSettings(app: FastifyInstance, deps: Deps): void {
  route(app, deps, readTraceSettings, async ({ principal }) => {
    const settings = await findTraceSettings(deps.sql, principal.teamId)
    if (settings === null) throw notFound('Team')
    return settings
  })

  // Proxies cache them: they decide about capture before a record is written.
  route(app, deps, updateTraceSettings, ({ body, principal }) =>
    changeTeam(deps, principal.teamId, async tx => {
      const before = await lockTraceSettings(tx, principal.teamId)
      const redactKeys = body.redactKeys && [...new Set(body.redactKeys)]
      const settings = await changeTraceSettings(tx, principal.teamId, { ...body, redactKeys })
      if (before === null || settings === null) throw notFound('Team')
      const changed = changedFields(before, settings, ['capturePayloads', 'redactKeys', 'retentionDays'])
      if (changed.length > 0) await record(tx, principal, deps.now(), 'trace_settings_updated', { changed })
      return settings
    }),
  )
}
