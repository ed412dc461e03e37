/**
 * A URL, or several with commas between them, as it may be printed. All before the last @ of an address counts as its
 * credentials: a password may hold an @ or a slash unescaped, and the scheme is what people forget.
 */
export const withoutCredentials = (urls: string): string =>
  urls
    .split(/,(?=\s*[\w+.-]+:\/\/)/)
    .map(url =>
      url.replace(/^(\s*[\w+.-]+:\/\/)?.*@/s, '$1***@').replace(/([?&]\w*pass\w*=)[^&]*/gi, '$1***'),
    )
    .join(',')
