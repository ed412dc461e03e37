/**
 * The rules of the code base, held by reading its files (design D1): which way imports go, how big a file may be, where
 * SQL and the environment may be read. A rule that must bend is changed here, in the open.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folders = ['bin', 'proxy', 'control-plane', 'shared', 'bench', 'test']
const MOST_LINES = 400

interface SourceFile {
  /** From the root, with `/`. */
  path: string
  text: string
  /** The same without comments; strings and templates are kept. */
  code: string
}

const files: SourceFile[] = folders
  .flatMap(folder => filesBelow(folder))
  .filter(path => /\.(ts|mjs)$/.test(path))
  .map(path => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, code: withoutComments(text) }
  })
const byPath = new Map(files.map(file => [file.path, file]))
const product = files.filter(({ path }) => /^(proxy|control-plane|shared)\//.test(path))

function filesBelow(folder: string): string[] {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return entries
    .filter(entry => entry.isFile())
    .map(entry => relative(root, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
}

/** Good enough for this code base: a `//` in a string follows a colon (URLs) or is not at a word's start. */
function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|[\s;{}(),])\/\/.*$/gm, '$1')
}

/** Paths of the project's files that a file imports, types included. */
function importsOf({ path, code }: SourceFile): string[] {
  const found = code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*'(\.[^']+)'/g)
  return [...found].map(([, target = '']) =>
    normalize(join(dirname(path), target))
      .replaceAll('\\', '/')
      .replace(/\.js$/, '.ts'),
  )
}

/** Imports that exist at run time: cycles of types alone do no harm. */
function runtimeImportsOf({ path, code }: SourceFile): string[] {
  const values = code.replace(/\b(import|export)\s+type\b[^;]*?from\s*'[^']+'/g, '')
  return importsOf({ path, text: values, code: values })
}

const offenders = (list: readonly SourceFile[], isOne: (file: SourceFile) => boolean) =>
  list.filter(isOne).map(({ path }) => path)

test('proxy and control plane import shared and themselves, never each other; shared imports only shared', async t => {
  const allowed: Record<string, string[]> = {
    proxy: ['proxy', 'shared'],
    'control-plane': ['control-plane', 'shared'],
    shared: ['shared'],
  }
  const wrong = product.flatMap(file => {
    const mine = file.path.split('/')[0] ?? ''
    return importsOf(file)
      .filter(target => !allowed[mine]?.includes(target.split('/')[0] ?? ''))
      .map(target => `${file.path} -> ${target}`)
  })
  t.same(wrong, [])
})

test('no import leads in a circle', async t => {
  const done = new Set<string>()
  const circles: string[] = []
  const visit = (path: string, trail: string[]) => {
    if (trail.includes(path)) circles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '))
    const file = byPath.get(path)
    if (file === undefined || done.has(path) || trail.includes(path)) return
    for (const target of runtimeImportsOf(file)) visit(target, [...trail, path])
    done.add(path)
  }
  for (const { path } of files) visit(path, [])
  t.same(circles, [])
})

test('everything is exported by name', async t => {
  t.same(
    offenders(files, ({ code }) => /^export default\b/m.test(code)),
    [],
  )
})

test(`no file is longer than ${MOST_LINES} lines`, async t => {
  const long = offenders(files, ({ text }) => text.trimEnd().split('\n').length > MOST_LINES)
  t.same(long, [])
})

test('the environment is read in config.ts, in bin/, in bench/ and in tests', async t => {
  const wrong = offenders(
    product,
    ({ path, code }) =>
      /\bprocess\.env\b/.test(code) && !/^(proxy|proxy\/http|control-plane)\/config\.ts$/.test(path),
  )
  t.same(wrong, [])
})

test('SQL is in a queries file, under db/, in the PostgreSQL ledger, in migrations and where jobs are added', async t => {
  const home =
    /(^|\/)([a-z-]+-)?queries\.ts$|^control-plane\/db\/|^shared\/ledger\/postgres-[a-z-]+\.ts$|^control-plane\/jobs\/enqueue\.ts$/
  // The tag of porsager's client, under the names it goes by here, or a statement in a string for pg.
  const tagged = /\b(sql|tx|transaction)(<[^`;]*>)?`/
  const inString =
    /['"`]\s*(select\s.+\sfrom|insert\s+into|update\s+\w+\s+set|delete\s+from|with\s+\w+\s+as)\s/i
  const wrong = offenders(
    product,
    ({ path, code }) => !home.test(path) && (tagged.test(code) || inString.test(code)),
  )
  t.same(wrong, [])
})

test('only a vendor’s own file asks which provider it is', async t => {
  const vendor = /^proxy\/providers\/(openai|anthropic|gemini|google|openai-compatible)(-[a-z-]+)?\.ts$/
  const asks =
    /\bprovider(Kind)?\s*[!=]==?\s*'|'(openai|anthropic|google|openai_compatible)'\s*[!=]==?\s*\w*\.?provider|case '(openai|anthropic|google|openai_compatible)'/
  const wrong = offenders(
    files.filter(({ path }) => path.startsWith('proxy/') && !vendor.test(path)),
    ({ code }) => asks.test(code),
  )
  t.same(wrong, [])
})

test('a shared file outside the contract is reached by both programs', async t => {
  const reachedBy = (program: string) => {
    const reached = new Set<string>()
    const follow = (path: string) => {
      const file = byPath.get(path)
      if (file === undefined || reached.has(path)) return
      reached.add(path)
      importsOf(file).forEach(follow)
    }
    for (const { path } of files.filter(file => file.path.startsWith(`${program}/`))) follow(path)
    return reached
  }
  const [proxy, controlPlane] = [reachedBy('proxy'), reachedBy('control-plane')]
  const lonely = files.filter(
    ({ path }) =>
      path.startsWith('shared/') &&
      !path.startsWith('shared/contract/') &&
      !(proxy.has(path) && controlPlane.has(path)),
  )
  t.same(
    lonely.map(({ path }) => path),
    [],
  )
})

test('folders and files are named by their subject', async t => {
  const drawers = files.filter(({ path }) => /(^|\/)(utils?|helpers?|common|misc|lib)(\/|\.ts$)/.test(path))
  t.same(
    drawers.map(({ path }) => path).filter(path => path !== 'shared/contract/common.ts'),
    [],
  )
})

test('no file names a place of one machine, or leaves work for later', async t => {
  const self = 'test/architecture.test.ts'
  const texts = [...files, ...texted()].filter(({ path }) => path !== self)
  // A workplace, a home directory, and a registry that is not the public one.
  const machine = /(^|[\s'"`(=])\/(work|home|Users)\/[a-z]/m
  t.same(
    offenders(texts, ({ text }) => machine.test(text)),
    [],
  )
  t.same(
    offenders(texts, ({ text }) => /\b(TODO|FIXME|XXX)\b/.test(text)),
    [],
  )
})

test('no type is switched off and no test is skipped', async t => {
  const wrong = offenders(
    files.filter(({ path }) => path !== 'test/architecture.test.ts'),
    ({ code, text }) =>
      /@ts-(ignore|expect-error|nocheck)|biome-ignore-all/.test(text) ||
      /\bas any\b|:\s*any\b/.test(code) ||
      /\bt\.(skip|todo)\(|\{\s*(skip|todo):\s*true/.test(code),
  )
  t.same(wrong, [])
})

function texted(): SourceFile[] {
  const others = ['README.md', '.ci/run', 'package.json', ...filesBelow('migrations')]
  return others.map(path => {
    const text = readFileSync(join(root, path), 'utf8')
    return { path, text, code: text }
  })
}
