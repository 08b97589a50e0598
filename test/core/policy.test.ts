import { spawn } from 'node:child_process'
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import t from 'tap'
import { type Mutant, MUTANTS } from './policy/mutants.ts'
import { proveOrder } from './policy/order.ts'
import { provePolicy } from './policy/policy.ts'
import { proveRequests } from './policy/requests.ts'
import { loadSubject } from './policy/subject.ts'
import { createTally, type Tally } from './policy/tally.ts'

const root = new URL('../..', import.meta.url)
const core = new URL('core/', root)

await t.test('the service decides what the contract says', async (t) => {
  const subject = await loadSubject(core)
  const total = { decisions: 0, mismatches: 0 }
  const prove = (name: string, atLeast: number, fill: (tally: Tally) => void): void => {
    const tally = createTally()
    fill(tally)
    total.decisions += tally.decisions
    total.mismatches += tally.mismatches
    t.same(tally.examples, [], `${name}: ${tally.decisions.toLocaleString('en')} compared`)
    t.ok(tally.decisions >= atLeast, `${name}: nothing was left out`)
  }
  prove('decide and explain', 10_000_000, (tally) => provePolicy(subject, tally, true))
  prove('whole requests', 200_000, (tally) => proveRequests(subject, tally, true))
  prove('the order of checks', 10_000, (tally) => proveOrder(subject, tally, true))
  console.log(`${total.decisions} decisions, ${total.mismatches} mismatches`)
})

await t.test('the proof catches every mutant of the policy', async (t) => {
  t.ok(MUTANTS.length >= 20)
  t.equal(new Set(MUTANTS.map(({ name }) => name)).size, MUTANTS.length, 'names are different')
  const base = await mkdtemp(join(tmpdir(), 'partner-api-mutants-'))
  t.teardown(() => rm(base, { recursive: true, force: true }))
  await symlink(fileURLToPath(new URL('node_modules', root)), join(base, 'node_modules'))

  const folders = new Map<string, Mutant>()
  for (const [index, mutant] of MUTANTS.entries()) {
    const folder = join(base, String(index))
    await cp(fileURLToPath(core), join(folder, 'core'), { recursive: true })
    const file = join(folder, 'core', mutant.file)
    const pieces = (await readFile(file, 'utf8')).split(looselySpaced(mutant.find))
    // Code that was rewritten needs a mutant that was rewritten with it.
    if (
      t.equal(pieces.length, 2, `${mutant.name}: ${JSON.stringify(mutant.find)} is in ${mutant.file} once`)
    ) {
      await writeFile(file, pieces.join(mutant.replace))
      folders.set(folder, mutant)
    }
  }
  const original = join(base, 'original')
  await cp(fileURLToPath(core), join(original, 'core'), { recursive: true })

  const all = [original, ...folders.keys()]
  const caught = new Map(
    (await Promise.all([0, 1].map((half) => tryMutants(all.filter((_, index) => index % 2 === half)))))
      .flat(),
  )
  t.equal(caught.get(original), null, 'a copy of what is right is not taken for a mutant')
  for (const [folder, { name }] of folders) {
    t.type(caught.get(folder), 'string', `caught: ${name}`)
    console.log(`${typeof caught.get(folder) === 'string' ? 'caught' : 'ALIVE '}  ${name}`)
  }
  console.log(
    `${[...caught.values()].filter((why) => why !== null).length} of ${MUTANTS.length} mutants caught`,
  )
})

function looselySpaced(text: string): RegExp {
  return new RegExp(text.replace(/[$()*+./?[\\\]^{|}]/g, '\\$&').replace(/\s+/g, '\\s+'))
}

/** @returns For each folder what gave its mutant away, or null. */
function tryMutants(folders: readonly string[]): Promise<[folder: string, caught: string | null][]> {
  return new Promise((resolve, reject) => {
    const program = fileURLToPath(new URL('policy/judge-mutants.ts', import.meta.url))
    const child = spawn(process.execPath, [program, ...folders], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    let errors = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => output += text)
    child.stderr.setEncoding('utf8').on('data', (text: string) => errors += text)
    child.on('error', reject)
    child.on('close', (code) => {
      if (code !== 0) return reject(new Error(`Trying mutants ended with ${code}: ${errors}`))
      resolve(
        output.trim().split('\n').map((line): [string, string | null] => {
          const { folder, caught } = JSON.parse(line)
          return [folder, caught]
        }),
      )
    })
  })
}
