import { spawnSync } from 'node:child_process'

/** Why no certificate can be made on this machine, as `skip` has it. */
export const noOpenssl: string | false = spawnSync('openssl', ['version']).status === 0
  ? false
  : 'no openssl is installed'

/** Makes a certificate that vouches for itself, and its key, in files. */
export function makeCertificate(name: string, cert: string, key: string): void {
  const { status, stderr } = spawnSync('openssl', [
    ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2'],
    ...['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`, '-out', cert, '-keyout', key],
  ], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl made no certificate: ${stderr}`)
}
