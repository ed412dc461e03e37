import { hkdfSync } from 'node:crypto'

/** Every secret of agh is derived from `AGH_SECRET` with its own label (spec 4, section 1). */
export type SecretLabel = 'provider-keys' | 'session' | 'unsubscribe' | 'internal'

/** 32 bytes. @param aghSecret the text of AGH_SECRET, at least 32 bytes. */
export function deriveSecret(aghSecret: string, label: SecretLabel): Buffer {
  return Buffer.from(hkdfSync('sha256', aghSecret, 'agh', `agh/${label}/v1`, 32))
}

/** The bearer token of calls between proxy and control plane. */
export const internalToken = (aghSecret: string): string =>
  deriveSecret(aghSecret, 'internal').toString('base64url')
