import type { ProviderKind } from '../../../shared/contract/common.js'
import type { ConnectionConfig } from '../../../shared/contract/connections.js'
import { validation } from '../../../shared/errors/app-error.js'
import { hostRefusal } from '../../../shared/network/addresses.js'

/** Where calls go when a connection names no base URL; each holds the version segment (spec 4, section 4). */
const DEFAULT_BASE_URL: Record<Exclude<ProviderKind, 'openai_compatible'>, string> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
}

/**
 * A config as it is stored: `base_url` checked and without a trailing slash.
 *
 * What a name resolves to is checked when the proxy connects; here only what the URL itself says.
 *
 * @throws AppError VALIDATION_ERROR for a missing, malformed or refused `base_url`.
 */
export function checkedConfig(
  provider: ProviderKind,
  config: ConnectionConfig,
  privateHosts: 'allow' | 'deny',
): ConnectionConfig {
  if (config.base_url !== undefined) {
    return { ...config, base_url: checkedBaseUrl(config.base_url, privateHosts) }
  }
  if (provider === 'openai_compatible') throw validation('config.base_url: Required')
  return config
}

/** Where a connection's calls go. @returns an absolute URL without a trailing slash. */
export function baseUrlOf(provider: ProviderKind, config: ConnectionConfig): string {
  if (config.base_url !== undefined) return config.base_url
  if (provider === 'openai_compatible')
    throw new Error('A compatible connection without base_url was stored.')
  return DEFAULT_BASE_URL[provider]
}

/** Whether a stored key would travel to another place under the new config (spec 4, section 4). */
export const movesOrigin = (provider: ProviderKind, from: ConnectionConfig, to: ConnectionConfig): boolean =>
  new URL(baseUrlOf(provider, from)).origin !== new URL(baseUrlOf(provider, to)).origin

function checkedBaseUrl(text: string, privateHosts: 'allow' | 'deny'): string {
  const url = URL.canParse(text) ? new URL(text) : null
  if (url === null || !/^https?:$/.test(url.protocol)) throw validation('config.base_url: Invalid url')
  if (url.username !== '' || url.password !== '') {
    throw validation('config.base_url: A URL with credentials is not allowed.')
  }
  // Calls append their own path, and some their own query.
  if (url.search !== '' || url.hash !== '' || /[?#]/.test(text)) {
    throw validation('config.base_url: A URL with a query or fragment is not allowed.')
  }
  const reason = hostRefusal(url.hostname, privateHosts === 'deny' ? 'public' : 'private-allowed')
  if (reason !== null) throw validation(`config.base_url: The host is ${reason}, which is not allowed.`)
  return url.href.replace(/\/+$/, '')
}
