import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

/**
 * Seals provider keys and team secrets with AES-256-GCM. The associated data binds a ciphertext to its team and row,
 * so that one copied to another row or team does not open. Text form: `v1.<kid>.<nonce>.<ciphertext and tag>`.
 */
export interface Vault {
  seal(plaintext: string, owner: SealOwner): string
  /** @throws Error when the text was altered, belongs to another owner, or was sealed with an unknown key. */
  open(sealed: string, owner: SealOwner): string
}

export interface SealOwner {
  teamId: string
  rowId: string
}

const NONCE_BYTES = 12
const TAG_BYTES = 16

/** @param keys 32-byte keys, newest first: the first seals, all open. Rotation adds a key in front and reseals rows. */
export function createVault(keys: readonly Buffer[]): Vault {
  const [current, ...older] = keys.map(key => ({ kid: keyId(key), key }))
  if (current === undefined) throw new Error('A vault needs a key.')
  const byKid = new Map([current, ...older].map(entry => [entry.kid, entry.key]))

  return {
    seal(plaintext, owner) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv('aes-256-gcm', current.key, nonce)
      cipher.setAAD(associatedData(owner, current.kid))
      const sealed = Buffer.concat([cipher.update(plaintext, 'utf8'), cipher.final(), cipher.getAuthTag()])
      return ['v1', current.kid, nonce.toString('base64url'), sealed.toString('base64url')].join('.')
    },
    open(sealed, owner) {
      const [version, kid, nonce, body] = sealed.split('.')
      const key = kid === undefined ? undefined : byKid.get(kid)
      if (
        version !== 'v1' ||
        kid === undefined ||
        nonce === undefined ||
        body === undefined ||
        key === undefined
      ) {
        throw new Error('The sealed value has an unknown form or key.')
      }
      const bytes = Buffer.from(body, 'base64url')
      const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(nonce, 'base64url'))
      decipher.setAAD(associatedData(owner, kid))
      decipher.setAuthTag(bytes.subarray(bytes.length - TAG_BYTES))
      return (
        decipher.update(bytes.subarray(0, bytes.length - TAG_BYTES), undefined, 'utf8') +
        decipher.final('utf8')
      )
    },
  }
}

const keyId = (key: Buffer) => createHash('sha256').update(key).digest('hex').slice(0, 8)

const associatedData = (owner: SealOwner, kid: string) => Buffer.from(`${owner.teamId}|${owner.rowId}|${kid}`)
