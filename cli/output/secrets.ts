/** The one writer of secrets: each is printed on standard output, or written to the new file of `--out`. */
import { fstatSync, readFileSync, statSync, writeSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import process from 'node:process'
import { CliError, type Loss } from '../errors.ts'
import { describeFileError, endBySignal, interrupts } from '../files.ts'
import { type CommandResult, type Io, unwritableError } from './print.ts'

/** The values of the options that `withSecret` adds. */
export interface SecretOptions {
  readonly out?: string
  readonly quiet?: true
}

/** A secret whose only copy is to be written. */
export interface NewSecret {
  readonly kind: keyof typeof secretNotes
  readonly secret: string
  readonly lost: Loss
  /** Makes the result with the secret, or with the name of its file. */
  toResult(name: string, value: string): CommandResult
}

/** Where the secrets of a command go. */
export interface SecretWriter {
  /** Checks what can be known before a secret is made. @throws {CliError} `output_not_written` */
  check(): void
  /**
   * @param line The line of a file.
   * @returns The result to print, which contains the secret unless it was written to a file.
   * @throws {CliError} `key_not_written`
   */
  write(made: NewSecret, line?: string): Promise<CommandResult>
}

/** The sentences for each kind of secret: when it is printed, and when it is in a file. */
const secretNotes = {
  key: ['This key is shown only once. Store it now.', 'The only copy of the key is in'],
  link: [
    'This link is shown only once. It makes the key, once, for the one who opens it.',
    'The only copy of the link is in',
  ],
  secret: [
    'This secret is shown only once. Give it to the receiver now.',
    'The only readable copy of the secret is in',
  ],
} as const

/** The loss of a key that was issued. */
export function lostKey(id: string): Loss {
  const remedy = { purpose: 'To replace it', command: 'keys rotate', args: [id, '--overlap', '0'] }
  return { detail: `Key ${id} was issued but is lost.`, remedy }
}

/** Makes a secret, and the result that prints it or names its file. @throws {CliError} `key_not_written` */
export async function makeSecret(
  { io }: { readonly io: Io },
  { out, quiet }: SecretOptions,
  make: () => Promise<NewSecret>,
): Promise<CommandResult> {
  return await withSecretWriter(io.stdout, out, async (writer) => {
    writer.check()
    const made = await make()
    const { notes, ...result } = await writer.write(made)
    if (quiet) return { ...result, text: out === undefined ? `${made.secret}\n` : '' }
    const [printed, written] = secretNotes[made.kind]
    const note = out === undefined ? printed : `${written} ${out}.`
    return { ...result, notes: async () => [note, ...await notes?.() ?? []] }
  })
}

/** @param out The new file; without it, secrets are part of the results to print. */
export async function withSecretWriter<T>(
  stdout: Io['stdout'],
  out: string | undefined,
  work: (writer: SecretWriter) => Promise<T>,
): Promise<T> {
  if (out !== undefined) return await inNewFile(out, work)
  return await work({
    check: () => requireWritable(stdout, 'Use --out FILE.'),
    write: ({ kind, secret, lost, toResult }) => Promise.resolve({ ...toResult(kind, secret), lost }),
  })
}

/** Checks that output can be written, before a secret is made for it. @throws {CliError} `output_not_written` */
export function requireWritable({ fd }: Io['stdout'], advice: string): void {
  if (fd === undefined) return
  try {
    writeSync(fd, new Uint8Array())
    const isNull = fstatSync(fd).rdev === statSync('/dev/null', { throwIfNoEntry: false })?.rdev
    if (isNull && isReadable(fd)) throw new Error('it is closed')
  } catch (error) {
    throw unwritableError(error as Error, { detail: `Nothing was changed. ${advice}` })
  }
}

/**
 * Whether a descriptor can be read, too. In place of a standard output that is closed, runtimes open /dev/null to read
 * and write, unlike `> /dev/null`. Deno cannot try to read it, so /proc has to tell.
 */
function isReadable(fd: number): boolean {
  try {
    const [, flags = '2'] = /^flags:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1')) ?? []
    return (parseInt(flags, 8) & 3) === 2
  } catch {
    return true
  }
}

/** Creates the file before secrets are made, so that none is lost, and removes it if none is written. */
async function inNewFile<T>(path: string, work: (writer: SecretWriter) => Promise<T>): Promise<T> {
  let file: FileHandle | undefined
  let isSaved = false
  // An interrupt would leave an empty file, or lose a key that is issued: it ends the program after the key.
  let interrupt: NodeJS.Signals | undefined
  const defer = (signal: NodeJS.Signals) => {
    interrupt = signal
  }
  for (const signal of interrupts) process.on(signal, defer)
  try {
    file = await createFile(path)
    return await work({
      check() {},
      async write({ kind, secret, lost, toResult }, line = secret) {
        await append(file!, path, line, lost)
        isSaved = true
        if (interrupt !== undefined) throw new CliError(1, 'interrupted', 'Interrupted: repeat the command.')
        const [, written] = secretNotes[kind]
        return { ...toResult('out', path), lost: { detail: `The change is made. ${written} ${path}.` } }
      },
    })
  } finally {
    await file?.close()
    if (file !== undefined && !isSaved) await rm(path, { force: true })
    for (const signal of interrupts) process.off(signal, defer)
    if (interrupt !== undefined) endBySignal(interrupt)
  }
}

async function createFile(path: string): Promise<FileHandle> {
  try {
    // `wx` does not follow links or replace files.
    return await open(path, 'wx', 0o600)
  } catch (error) {
    const reasons: Readonly<Record<string, string>> = {
      EEXIST: 'the file exists, and --out never overwrites',
      ENOENT: `there is no folder ${dirname(path)}`,
    }
    const reason = reasons[(error as NodeJS.ErrnoException).code ?? ''] ?? describeFileError(error)
    throw new CliError(1, 'file_not_created', `Nothing was changed. ${path} can't be created: ${reason}.`)
  }
}

/** Writes a line, and flushes it. */
async function append(file: FileHandle, path: string, line: string, lost: Loss): Promise<void> {
  try {
    await file.appendFile(`${line}\n`)
    await file.sync()
  } catch (error) {
    const sentence = `${path} can't be written: ${describeFileError(error)}. ${lost.detail}`
    throw new CliError(1, 'key_not_written', sentence, { remedy: lost.remedy })
  }
}
