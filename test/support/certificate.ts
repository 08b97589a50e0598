import { spawnSync } from 'node:child_process'

/** Why certificates cannot be created on this machine, for `skip`. */
export const noOpenssl: string | false = spawnSync('openssl', ['version']).status === 0
  ? false
  : 'openssl is not installed'

/** Writes a self-signed certificate and its key to files. */
export function makeCertificate(name: string, cert: string, key: string): void {
  openssl([
    'req',
    '-x509',
    '-newkey',
    'ec',
    '-pkeyopt',
    'ec_paramgen_curve:prime256v1',
    '-nodes',
    '-days',
    '2',
    '-subj',
    `/CN=${name}`,
    '-addext',
    `subjectAltName=DNS:${name}`,
    '-out',
    cert,
    '-keyout',
    key,
  ])
}

/** Makes a certificate one that expired yesterday. */
export function expireCertificate(cert: string, key: string): void {
  openssl(['x509', '-in', cert, '-signkey', key, '-days', '-1', '-out', cert])
}

function openssl(args: readonly string[]): void {
  const { status, stderr } = spawnSync('openssl', args, { encoding: 'utf8' })
  if (status !== 0) throw new Error(`openssl created no certificate: ${stderr}`)
}
