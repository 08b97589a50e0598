/**
 * npm packs `package.json` as it is on the disk. `manifest.ts publish` puts the manifest that the build has
 * written in its place, and `manifest.ts restore` brings the one of the checkout back. If npm is killed
 * between the two, git has it.
 */
import { copyFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../..', import.meta.url))
const manifest = join(root, 'package.json')
const published = join(root, 'dist/package.json')
const ofCheckout = join(root, 'dist/checkout.json')

if (process.argv[2] === 'publish') {
  copyFileSync(manifest, ofCheckout)
  copyFileSync(published, manifest)
} else {
  renameSync(ofCheckout, manifest)
}
