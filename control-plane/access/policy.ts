import type { Role } from '../../shared/contract/common.js'
import type { Access } from '../../shared/contract/endpoint.js'
import { forbidden, unauthorized } from '../../shared/errors/app-error.js'
import type { Principal } from './principal.js'

const writers: readonly Role[] = ['owner', 'admin', 'editor']
const managers: readonly Role[] = ['owner', 'admin']

export const NO_PERSON = 'Team-scoped keys carry no user identity.'

/**
 * Whether a caller may use an endpoint; the roles of spec 1, Authentication, and spec 4, sections 3 and 9.
 *
 * @throws AppError UNAUTHORIZED for a kind of credential that the endpoint does not take, FORBIDDEN for a role or a
 *   team-scoped key that is not enough.
 */
export function allow(access: Access, principal: Principal): void {
  switch (access) {
    case 'public':
      return
    case 'internal':
      if (principal.via !== 'internal') throw unauthorized()
      return
    case 'ingest':
    case 'model-list':
      return
    case 'member':
      refuseVirtualKey(principal)
      return
    case 'person':
      refuseVirtualKey(principal)
      if (principal.userId === null) throw forbidden(NO_PERSON)
      return
    case 'writer':
      needRole(principal, writers)
      return
    case 'manager':
      needRole(principal, managers)
      return
    case 'owner':
      needRole(principal, ['owner'])
      return
    case 'session':
      needSession(principal)
      return
    case 'session-manager':
      needSession(principal)
      needRole(principal, managers)
      return
    case 'completion':
      if (principal.via === 'virtual_key' || principal.via === 'team_api_key') return
      needRole(principal, writers)
      return
    default:
      access satisfies never
  }
}

/** For rules that depend on more than the endpoint: whether the person is an owner or admin. */
export const isManager = ({ role }: Pick<Principal, 'role'>): boolean =>
  role !== null && managers.includes(role)

function refuseVirtualKey(principal: Principal): void {
  if (principal.via === 'virtual_key') throw unauthorized()
}

function needSession(principal: Principal): void {
  if (principal.via !== 'session') throw unauthorized()
}

function needRole(principal: Principal, roles: readonly Role[]): void {
  refuseVirtualKey(principal)
  if (principal.role === null || !roles.includes(principal.role)) throw forbidden()
}
