import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { AppError } from '../../../shared/errors/app-error.js'
import { malformed } from './malformed.js'

/** The route's own limit: compressing a body does not make a larger one acceptable. */
const MOST_BYTES = 20 * 1024 * 1024
/** Honest batches compress 5 to 30 times, very repetitive ones somewhat more. */
const MOST_RATIO = 100
/** Below this the ratio is nobody's concern: a small batch of equal spans compresses as well as a bomb. */
const SMALL_BYTES = 1024 * 1024

const inflate = promisify(gunzip)

/**
 * The bytes of a gzip body, inflated off the event loop. It stops at the bound: a bomb costs what an honest body of
 * that size costs.
 *
 * @throws AppError PAYLOAD_TOO_LARGE past 20 MB, or past 100 times its own size; VALIDATION_ERROR for what is not gzip.
 */
export async function gunzipped(body: Buffer): Promise<Buffer> {
  const byRatio = Math.max(SMALL_BYTES, body.length * MOST_RATIO)
  const maxOutputLength = Math.min(MOST_BYTES, byRatio)
  try {
    return await inflate(body, { maxOutputLength, chunkSize: 256 * 1024 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') {
      throw malformed(`gzip: ${(error as Error).message}`, error)
    }
    const bound = byRatio < MOST_BYTES ? `${MOST_RATIO} times its compressed size` : '20 MB'
    throw new AppError('PAYLOAD_TOO_LARGE', `The gzip body inflates to more than ${bound}.`, { cause: error })
  }
}
