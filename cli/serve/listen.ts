import process from 'node:process'
import type { ListenOptions, RunningServer, ServableApi } from '../../adapters/runtimes/server.ts'
import { CliError } from '../errors.ts'

/** Serves an API. @param option The one that has the port, for messages. @throws {CliError} `address_unavailable` */
export async function listen(
  api: ServableApi,
  option: string,
  address: ListenOptions,
): Promise<RunningServer> {
  const { serve } = await importAdapter()
  return await serve(api, address).catch((error) => {
    throw listenFailure(error.cause ?? error, option, address)
  })
}

function importAdapter() {
  if (process.versions['bun'] !== undefined) return import('../../adapters/runtimes/bun.ts')
  return import('../../adapters/runtimes/node.ts')
}

function listenFailure(
  error: { readonly code?: string },
  option: string,
  { host, port, reusePort = false }: ListenOptions,
): unknown {
  const { code } = error
  if (code === undefined) return error
  const address = `Port ${port} on ${host}`
  const noAddress = `This machine has no address ${host}.`
  const details: Readonly<Record<string, string>> = {
    EADDRINUSE: reusePort
      ? `${address} is in use by a process without --reuse-port, or of another account.`
      : `${address} is in use. Choose another one with ${option}; ${option} 0 takes a free one.`,
    EACCES: `${address} needs more permissions. This account can use ports from 1024 up.`,
    EADDRNOTAVAIL: noAddress,
    ENOTFOUND: noAddress,
  }
  return new CliError(1, 'address_unavailable', details[code] ?? `${address} can't be listened on (${code}).`)
}
