import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto'
import { unavailable } from '../../shared/errors/app-error.js'

/** OWASP's 2^15, 8, 3: 32 MB and about 200 ms of one core, on libuv's threads and not on the event loop. */
const cost = { N: 2 ** 15, r: 8, p: 3 }
const KEY_BYTES = 32
const SALT_BYTES = 16

/** Two of libuv's four threads: name look-ups and files keep the others. */
const MAX_RUNNING = 2
/** Beyond it, some ten seconds of hashing wait; a caller is told to come back. */
const MAX_WAITING = 100

let running = 0
const waiting: (() => void)[] = []

/** @returns `scrypt$N$r$p$salt$key`, what users.password_hash holds. @throws AppError UNAVAILABLE when too many wait. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(SALT_BYTES)
  const key = await derive(password, salt, KEY_BYTES, cost)
  return ['scrypt', cost.N, cost.r, cost.p, salt.toString('base64url'), key.toString('base64url')].join('$')
}

/** Unknown accounts are checked against it, so that they take as long as known ones. */
const nobody = ['scrypt', cost.N, cost.r, cost.p, randomBytes(SALT_BYTES).toString('base64url'), ''].join('$')

/** @param stored a hash of `hashPassword`; null: no such account, which costs the same time and is false. */
export async function verifyPassword(password: string, stored: string | null): Promise<boolean> {
  const [kind, N, r, p, salt, key] = (stored ?? nobody).split('$')
  if (kind !== 'scrypt' || salt === undefined || key === undefined) return false
  const given = await derive(password, Buffer.from(salt, 'base64url'), KEY_BYTES, {
    N: Number(N),
    r: Number(r),
    p: Number(p),
  })
  const expected = Buffer.from(key, 'base64url')
  return expected.length === given.length && timingSafeEqual(expected, given)
}

async function derive(
  password: string,
  salt: Buffer,
  length: number,
  options: ScryptOptions,
): Promise<Buffer> {
  await turn()
  try {
    return await new Promise((resolve, reject) => {
      const limits = { ...options, maxmem: 64 * 1024 * 1024 }
      // NFKC: the same password typed on two keyboards is the same text.
      scrypt(password.normalize('NFKC'), salt, length, limits, (error, key) =>
        error === null ? resolve(key) : reject(error),
      )
    })
  } finally {
    running--
    waiting.shift()?.()
  }
}

async function turn(): Promise<void> {
  if (running >= MAX_RUNNING) {
    if (waiting.length >= MAX_WAITING) throw unavailable('Too many people are signing in.', 5)
    await new Promise<void>(resolve => waiting.push(resolve))
  }
  running++
}
