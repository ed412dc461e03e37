/**
 * Where a vendor's calls go when the connection has no `config.base_url` (spec 4, section 4). The version segment is
 * part of it; no trailing slash.
 */
export const defaultBaseUrl: Record<'openai' | 'anthropic' | 'google', string> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
}
