/**
 * Money inside agh is integer nano-dollars (1e-9 USD) in a JavaScript number: exact up to 2^53 nano = 9.007 million
 * dollars, which is why `limitUsd` is capped at 9,000,000. At the edge it is a number in USD.
 */
export const NANO_PER_USD = 1_000_000_000

/** Nano-dollars to the USD number of a response: 1234567 -> 0.001234567. */
export const usdFromNano = (nano: number): number => nano / NANO_PER_USD

/** USD to the nearest nano-dollar. */
export const nanoFromUsd = (usd: number): number => Math.round(usd * NANO_PER_USD)

/** Nano-dollars as a decimal USD string without exponent, for headers: 1234567 -> "0.001234567", 0 -> "0". */
export function usdText(nano: number): string {
  const whole = Math.trunc(nano / NANO_PER_USD)
  const rest = nano % NANO_PER_USD
  if (rest === 0) return String(whole)
  return `${whole}.${String(rest).padStart(9, '0').replace(/0+$/, '')}`
}
