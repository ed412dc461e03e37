/** A pattern for `like` and `ilike` that finds the text anywhere; `%`, `_` and `\` in it are ordinary characters. */
export const containing = (text: string): string =>
  `%${text.replace(/[\\%_]/g, character => `\\${character}`)}%`
