// Compiles the TypeScript into dist/ and copies the files that the compiler leaves behind: SQL and Lua.
// Skips the work when dist/ is newer than every source, so that `npm start` on a built clone costs nothing.
import { spawnSync } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const sources = ['bin', 'proxy', 'control-plane', 'shared', 'migrations', 'bench', 'test']
const stamp = join(root, 'dist', '.built')
const isAsset = name => /\.(sql|lua|json|sse|html|conf)$/.test(name)

/** @returns {string[]} every file below a folder, as absolute paths. */
function filesBelow(folder) {
  if (!existsSync(folder)) return []
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
}

const sourceFiles = () => sources.flatMap(folder => filesBelow(join(root, folder)))
const changedAt = file => statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0

/** @returns {boolean} whether dist/ was built after the last change of any source. */
export function isBuilt() {
  const builtAt = changedAt(stamp)
  const inputs = [...sourceFiles(), join(root, 'tsconfig.json'), join(root, 'package-lock.json')]
  return inputs.every(file => changedAt(file) < builtAt)
}

/** Builds. @returns {number} the compiler's exit code; 0 when dist/ is good. */
function build() {
  const startedAt = new Date()
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', root], { stdio: 'inherit', cwd: root })
  if (status !== 0) return status ?? 1
  for (const file of sourceFiles().filter(isAsset)) {
    const target = join(root, 'dist', file.slice(root.length + 1))
    mkdirSync(dirname(target), { recursive: true })
    cpSync(file, target)
  }
  removeOrphans()
  // Dated before the compile: a source saved while it ran counts as newer.
  writeFileSync(stamp, startedAt.toISOString())
  utimesSync(stamp, startedAt, startedAt)
  return 0
}

/** What was deleted or renamed must not live on in dist/: a test would run, a migration be applied. */
function removeOrphans() {
  const compiled = /\.js(\.map)?$/
  for (const file of filesBelow(join(root, 'dist'))) {
    if (!compiled.test(file) && !isAsset(file)) continue
    const source = join(root, file.slice(join(root, 'dist').length + 1)).replace(compiled, '.ts')
    if (!existsSync(source)) rmSync(file)
  }
}

const isCommand = process.argv[1] && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)
if (isCommand) {
  const forced = process.argv.includes('--force')
  if (forced) rmSync(join(root, 'dist'), { recursive: true, force: true })
  if (forced || !isBuilt()) process.exitCode = build()
}
