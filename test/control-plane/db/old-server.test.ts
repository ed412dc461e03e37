import { type AddressInfo, createServer, type Socket } from 'node:net'
import { type Test, test } from 'tap'
import { migrate } from '../../../control-plane/db/migrate.js'
import { isTooOld } from '../../../control-plane/db/server-version.js'

test('a server older than 14 is refused by name before anything is written to it', async t => {
  const server = await serverOfVersion(t, '13.23 (Debian 13.23-1.pgdg12+1)')
  await t.rejects(migrate(server.url), {
    name: 'SchemaError',
    message: 'PostgreSQL is 13.23 (Debian 13.23-1.pgdg12+1); agh needs 14 or later. Nothing was changed.',
  })
  t.same(server.asked, ['show server_version'])
})

test('versions are told apart as PostgreSQL, its packagers and its betas write them', async t => {
  for (const version of ['9.6.24', '13.23', '13.23 (Debian 13.23-1.pgdg12+1)'])
    t.ok(isTooOld(version), version)
  for (const version of ['14.0', '14.23', '16.4 (Debian 16.4-1)', '18.4', '19beta1'])
    t.notOk(isTooOld(version), version)
})

/** A port that speaks as much of PostgreSQL's protocol as it takes to say a version, and ends at any other question. */
async function serverOfVersion(t: Test, version: string): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = []
  const serve = (socket: Socket) => {
    socket.once('data', () => {
      socket.write(Buffer.concat([message('R', int32(0)), message('Z', text('I'))]))
      socket.on('data', data => {
        // The kind, four bytes of length, the text, a zero. `X` says good-bye.
        if (data.toString('latin1', 0, 1) === 'X') return
        asked.push(data.toString('utf8', 5, data.length - 1))
        if (asked.at(-1) === 'show server_version') socket.write(oneRow('server_version', version))
        else socket.destroy()
      })
    })
    socket.on('error', () => {})
  }
  const server = createServer(serve)
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => server.close())
  return { url: `postgres://agh@127.0.0.1:${(server.address() as AddressInfo).port}/agh`, asked }
}

function oneRow(column: string, value: string): Buffer {
  const field = Buffer.concat([
    text(column),
    text('\0'),
    int32(0),
    int16(0),
    int32(TEXT),
    int16(-1),
    int32(-1),
    int16(0),
  ])
  return Buffer.concat([
    message('T', Buffer.concat([int16(1), field])),
    message('D', Buffer.concat([int16(1), int32(Buffer.byteLength(value)), text(value)])),
    message('C', text('SHOW\0')),
    message('Z', text('I')),
  ])
}

/** The oid of the type text. */
const TEXT = 25

const message = (kind: string, body: Buffer): Buffer =>
  Buffer.concat([text(kind), int32(body.length + 4), body])

const text = (value: string): Buffer => Buffer.from(value, 'utf8')

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeInt16BE(value)
  return bytes
}
