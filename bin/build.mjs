// Compiles the TypeScript into dist/ and copies the files that the compiler leaves behind: SQL and Lua.
// Skips the work when dist/ is newer than every source, so that `npm start` on a built clone costs nothing.
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(dirname(fileURLToPath(import.meta.url)))
const sources = ['bin', 'proxy', 'control-plane', 'shared', 'migrations', 'bench', 'test']
const stamp = join(root, 'dist', '.built')
const isAsset = name => /\.(sql|lua|json|html|conf)$/.test(name)

/** @returns {string[]} every file below a folder of the project, as paths from its root. */
function filesBelow(folder) {
  const entries = readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
  return entries.filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
}

function isFresh(files) {
  const builtAt = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs ?? 0
  const inputs = [...files, join(root, 'tsconfig.json'), join(root, 'package-lock.json')]
  return inputs.every(file => (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0) < builtAt)
}

const startedAt = new Date()
const files = sources.flatMap(filesBelow)
if (process.argv.includes('--force') || !isFresh(files)) {
  if (process.argv.includes('--force')) rmSync(join(root, 'dist'), { recursive: true, force: true })
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin', 'tsc')
  const { status } = spawnSync(process.execPath, [tsc, '-p', root], { stdio: 'inherit', cwd: root })
  if (status !== 0) process.exit(status ?? 1)
  for (const file of files.filter(isAsset)) {
    const target = join(root, 'dist', file.slice(root.length + 1))
    mkdirSync(dirname(target), { recursive: true })
    cpSync(file, target)
  }
  // Dated before the compile: a source saved while it ran counts as newer.
  writeFileSync(stamp, startedAt.toISOString())
  utimesSync(stamp, startedAt, startedAt)
}
