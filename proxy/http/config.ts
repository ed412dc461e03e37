/** Request line and headers together, in bytes; more answers 431 or closes the connection. */
export const headerBlockBytes = 16 * 1024

/**
 * uWebSockets.js takes its header limit (4 KB by default) from the environment, once, when its binary is loaded, so
 * this must run before. It is the one variable that this program writes; it lives here because the rest of the code
 * does not touch the environment.
 */
export function setNativeHeaderLimit(): void {
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(headerBlockBytes)
}
