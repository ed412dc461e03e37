import { test } from 'tap'
import { isInternalPath } from '../../proxy/forward-path.js'

test('internal paths are recognised in every spelling', async t => {
  const spellings = [
    '/internal',
    '/internal/',
    '/internal/directory',
    '//internal/x',
    '/./internal/x',
    '/api/../internal/x',
    '/api/v1/../../internal/x',
    '/../internal/x',
    '/%69nternal/x',
    '/%49NTERNAL/x',
    '/Internal/x',
    '/%2569nternal/x',
    '/%252569nternal/x',
    '/internal%2fx',
    '/%2finternal/x',
    '/%2e%2e/internal/x',
    '/a/%2e%2e%2finternal/x',
    '/a%2f..%2finternal%2fx',
    '\\internal\\x',
    '/\\internal/x',
    '/%5cinternal/x',
    '/;a=b/internal/x',
    '/internal;a=b/x',
    '/internal%3fx',
    '/%3f/../internal/x',
    '/internal#x',
    '/%00internal/x',
    '/internal%00/x',
    '/ internal/x',
    '/%09internal/x',
    '/internal%20/x',
    '/%/internal/../internal/x'.replace('/%', ''),
  ]
  for (const path of spellings) t.ok(isInternalPath(path), path)
})

test('other paths are not taken for internal ones', async t => {
  const others = [
    '/',
    '/api/v1/prompts',
    '/internals',
    '/api/internal',
    '/internal-notes',
    '/%',
    '/%zz/x',
    '/a/b/../c',
  ]
  for (const path of others) t.notOk(isInternalPath(path), path)
})
