/** The migrations and queries are written for it: 13 does not parse the function bodies of migration 0004. */
export const OLDEST_POSTGRES = 14

/** @param serverVersion what `show server_version` says: `14.23`, `16.4 (Debian 16.4-1)`, `19beta1`. */
export const isTooOld = (serverVersion: string): boolean =>
  Number.parseInt(serverVersion, 10) < OLDEST_POSTGRES
