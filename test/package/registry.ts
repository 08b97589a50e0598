/** A registry of npm that has only what `partner-api` depends on. */
import { once } from 'node:events'
import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { ROOT, run } from './installed.ts'

/** Serves the installed dependencies of the package to npm, which finds nothing else. */
export async function serveDependencies(folder: string): Promise<{ readonly url: string; close(): void }> {
  const paths = [...dependencies(ROOT)]
  const { stdout } = await run(
    'npm',
    ['pack', '--json', '--ignore-scripts', '--offline', '--pack-destination', folder, ...paths],
    folder,
  )
  const packed: { name: string; version: string; filename: string; integrity: string }[] = JSON.parse(stdout)
  const server = createServer((request, response) => {
    const name = decodeURIComponent(request.url!.slice(1))
    const found = packed.findIndex((one) => one.name === name)
    if (found >= 0) {
      const { version, filename, integrity } = packed[found]!
      const manifest = JSON.parse(readFileSync(join(paths[found]!, 'package.json'), 'utf8'))
      const dist = { tarball: `http://${request.headers.host}/${filename}`, integrity }
      const versions = { [version]: { ...manifest, dist } }
      response.end(JSON.stringify({ name, 'dist-tags': { latest: version }, versions }))
    } else if (packed.some(({ filename }) => filename === name)) {
      response.end(readFileSync(join(folder, name)))
    } else response.writeHead(404).end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}

/** Folders of all packages that a package needs. */
function dependencies(folder: string, found: Set<string> = new Set()): Set<string> {
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  for (const name of Object.keys(manifest.dependencies ?? {})) {
    const nested = join(folder, 'node_modules', name)
    const path = realpathSync(existsSync(nested) ? nested : join(ROOT, 'node_modules', name))
    if (found.has(path)) continue
    found.add(path)
    dependencies(path, found)
  }
  return found
}
