import type { Role } from '../../shared/contract/common.js'

/** Who is calling, as far as the credential says (spec 1, Authentication). */
export interface Principal {
  via: 'session' | 'api_key' | 'team_api_key' | 'virtual_key' | 'internal' | 'anonymous'
  /** The team that the call acts in; empty for `internal` and `anonymous`. */
  teamId: string
  /** The person; null for team-scoped and virtual keys, `internal` and `anonymous`. */
  userId: string | null
  /** The person's current role in the team; null where there is no person. */
  role: Role | null
  /** Id of the session or key; empty for `internal` and `anonymous`. */
  credentialId: string
}

export const anonymous: Principal = {
  via: 'anonymous',
  teamId: '',
  userId: null,
  role: null,
  credentialId: '',
}

export const internal: Principal = { ...anonymous, via: 'internal' }
