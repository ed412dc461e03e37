/** `encodeURIComponent` for any text: it throws on half of a surrogate pair, which becomes U+FFFD here. */
export const percentEncoded = (text: string): string =>
  encodeURIComponent(text.replace(/\p{Surrogate}/gu, '\ufffd'))
