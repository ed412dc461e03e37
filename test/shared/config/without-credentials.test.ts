import { test } from 'tap'
import { z } from 'zod'
import { readEnvironment, sharedEnvironment } from '../../../shared/config/environment.js'
import { withoutCredentials } from '../../../shared/config/without-credentials.js'

test('no part of a password is printed, whatever the URL looks like', async t => {
  const cases: [url: string, shown: string][] = [
    ['postgres://me:secret@db/agh', 'postgres://***@db/agh'],
    ['postgres://me:se@cr/et@db:5432/agh', 'postgres://***@db:5432/agh'],
    ['me:secret@db/agh', '***@db/agh'],
    [':secret@cache:6379', '***@cache:6379'],
    ['smtp:me:secret@mail', '***@mail'],
    ['postgres:/me:secret@db/agh', '***@db/agh'],
    ['redis://me:secret@a,rediss://me:secret@b:1', 'redis://***@a,rediss://***@b:1'],
    ['redis://a, redis://:se,cret@b', 'redis://a, redis://***@b'],
    ['postgres://db/agh?user=me&password=secret&ssl=true', 'postgres://db/agh?user=me&password=***&ssl=true'],
    ['http://127.0.0.1:8788', 'http://127.0.0.1:8788'],
  ]
  for (const [url, shown] of cases) t.equal(withoutCredentials(url), shown, url)
})

test('a bad URL variable is named with its credentials masked, one without a scheme too', async t => {
  const environment = z.object({ DATABASE_URL: sharedEnvironment.DATABASE_URL })
  t.throws(() => readEnvironment(environment, { DATABASE_URL: 'me:secret@db/agh' }), {
    message: 'DATABASE_URL holds "***@db/agh"; it may hold a postgres:// URL.',
  })
})
