/**
 * The Redis keys of a team. All carry the hash tag `{teamId}`, so that Redis Cluster keeps them on one node and one
 * script may touch them together; what each holds is written at the top of lua/holds.lua, window.lua and publish.lua.
 */
export interface TeamKeys {
  state: string
  holds: string
  expiry: string
  revoked: string
}

export const teamKeys = (prefix: string, teamId: string): TeamKeys => ({
  state: `${prefix}{${teamId}}:state`,
  holds: `${prefix}{${teamId}}:holds`,
  expiry: `${prefix}{${teamId}}:expiry`,
  revoked: `${prefix}{${teamId}}:revoked`,
})

/** The rate windows of one credential: requests and tokens in one hash. */
export const windowKey = (prefix: string, teamId: string, credentialId: string): string =>
  `${prefix}{${teamId}}:window:${credentialId}`
