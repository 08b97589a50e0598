/** Checks the manifests of the examples with the schemas of Kubernetes and Compose, and starts what they describe. */
import { spawnSync } from 'node:child_process'
import { symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { Deployment } from 'kubernetes-models/apps/v1'
import { HorizontalPodAutoscaler } from 'kubernetes-models/autoscaling/v2'
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1'
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1'
import { Service } from 'kubernetes-models/v1'
import t from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { readPage, ROOT } from '../integration/docs.ts'
import { freePort } from '../postgres/free-port.ts'
import { serverFor } from '../postgres/fixtures.ts'
import { until } from '../postgres/until.ts'
import { cleanEnv, startServing, temporaryFolder } from '../support/cli-program.ts'

// deno-lint-ignore no-explicit-any -- the schemas are what is tested
type Manifest = any

const kinds: Readonly<Record<string, { new (data: Manifest): { validate(): void }; path: string }>> = {
  Deployment: Object.assign(Deployment, { path: 'apps/v1' }),
  Service: Object.assign(Service, { path: 'v1' }),
  PodDisruptionBudget: Object.assign(PodDisruptionBudget, { path: 'policy/v1' }),
  HorizontalPodAutoscaler: Object.assign(HorizontalPodAutoscaler, { path: 'autoscaling/v2' }),
  NetworkPolicy: Object.assign(NetworkPolicy, { path: 'networking.k8s.io/v1' }),
}
const text = readPage('examples/deploy/kubernetes.yaml')
const readManifests = (text: string): Manifest[] => parseAllDocuments(text).map((one) => one.toJS())
const manifests = readManifests(text)
const [{ spec: { template: { spec: pod } } }, service, budget, scaler, policy] = manifests
const [container] = pod.containers
const compose = parse(readPage('examples/deploy/compose.yaml'))

/** The schemas allow unknown members, the types do not. @returns What the compiler says. */
function typeErrors(manifests: readonly Manifest[]): string {
  const folder = temporaryFolder()
  symlinkSync(join(ROOT, 'test/node_modules'), join(folder, 'node_modules'))
  const lines = manifests.map((manifest, index) => {
    const { kind } = manifest
    const type = `import('kubernetes-models/${kinds[kind]!.path}/${kind}').I${kind}`
    return `export const manifest${index}: ${type} = ${JSON.stringify(manifest)}\n`
  })
  writeFileSync(join(folder, 'manifests.ts'), lines.join(''))
  const flags = '--ignoreConfig --noEmit --skipLibCheck --module nodenext --target esnext --types'.split(' ')
  const tsc = join(ROOT, 'node_modules/typescript/bin/tsc')
  return spawnSync(process.execPath, [tsc, ...flags, '', 'manifests.ts'], { cwd: folder, encoding: 'utf8' })
    .stdout
}

t.test('Kubernetes accepts the manifests', (t) => {
  t.same(manifests.map(({ kind }) => kind), Object.keys(kinds))
  for (const manifest of manifests) {
    t.doesNotThrow(() => new kinds[manifest.kind]!(manifest).validate(), manifest.kind)
  }
  t.equal(typeErrors(manifests), '')
  const [wrong] = readManifests(
    text.replace('terminationGracePeriodSeconds: 20', "terminationGracePeriodSeconds: '20'"),
  )
  t.throws(() => new Deployment(wrong).validate(), /terminationGracePeriodSeconds/)
  const misspelled = typeErrors(
    readManifests(text.replace('readOnlyRootFilesystem', 'readOnlyRootFileSystem')),
  )
  t.match(misspelled, /"readOnlyRootFileSystem"' does not exist/)
  t.end()
})

t.test('the pods keep to the restricted profile, and every selector finds them', (t) => {
  const { securityContext, automountServiceAccountToken, enableServiceLinks } = pod
  t.match(securityContext, {
    runAsNonRoot: true,
    runAsUser: 65532,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  t.same([automountServiceAccountToken, enableServiceLinks], [false, false])
  t.same(container.securityContext, {
    allowPrivilegeEscalation: false,
    readOnlyRootFilesystem: true,
    capabilities: { drop: ['ALL'] },
  })
  const { labels } = manifests[0].spec.template.metadata
  const selectors = [manifests[0].spec.selector.matchLabels, service.spec.selector]
  selectors.push(budget.spec.selector.matchLabels, policy.spec.podSelector.matchLabels)
  for (const selector of selectors) t.same(selector, labels)
  const ports = container.ports.map(({ name }: { name: string }) => name)
  t.same(ports, ['http', 'metrics'])
  t.same(service.spec.ports.map(({ targetPort }: { targetPort: string }) => targetPort), ['http'])
  t.same(policy.spec.ingress.flatMap(({ ports }: Manifest) => ports).map(({ port }: Manifest) => port), ports)
  t.match(scaler.spec, { scaleTargetRef: { name: manifests[0].metadata.name }, minReplicas: 2 })
  t.notOk('replicas' in manifests[0].spec, 'applying the file again does not undo what the scaler did')
  t.end()
})

t.test('pods reach the name server, the database with its authority, and webhooks', (t) => {
  t.same(policy.spec.policyTypes, ['Ingress', 'Egress'])
  const allowed = policy.spec.egress.flatMap(({ ports }: Manifest) => ports).map(({ port }: Manifest) => port)
  t.same(allowed, [53, 53, 5432, 443])
  const url = new URL(container.env[0].value)
  const [{ name, mountPath }] = container.volumeMounts
  t.equal(dirname(url.searchParams.get('sslrootcert')!), mountPath)
  t.same(pod.volumes.map(({ name }: Manifest) => name), [name])
  t.end()
})

const composeFails = spawnSync('docker-compose', ['--version']).status === 0
  ? false
  : 'docker-compose is not installed'

t.test('Compose accepts its file', { skip: composeFails }, (t) => {
  const check = (text: string) => {
    const folder = temporaryFolder()
    writeFileSync(join(folder, 'compose.yaml'), text)
    const options = { cwd: folder, env: cleanEnv({ PGPASSWORD: 'x' }), encoding: 'utf8' } as const
    const { status, stderr } = spawnSync('docker-compose', ['config', '--quiet'], options)
    return `${status} ${stderr}`
  }
  const text = readPage('examples/deploy/compose.yaml')
  t.match(check(text), /^0/)
  t.match(check(text.replaceAll('cap_drop', 'cap_drops')), /^1 .*Unsupported config option/s)
  t.end()
})

t.test('the servers of both start together on a new database', async (t) => {
  const postgres = await serverFor(t)
  const { hostname, port, pathname, password } = new URL(await postgres.createDatabase())
  const key = Buffer.alloc(32, 1).toString('base64')
  /** Starts a server with a URL and variables of a manifest, but for the place of the database. */
  const start = (args: readonly string[], env: Readonly<Record<string, string>>) => {
    const url = new URL(env['PARTNER_API_STORE']!)
    Object.assign(url, { username: postgres.user, hostname, port, pathname })
    // The server of the test has no certificate.
    for (const name of ['sslmode', 'sslrootcert']) url.searchParams.delete(name)
    return startServing(args, url.href, {
      env: { ...env, PORT: '0', HOST: '127.0.0.1', PGPASSWORD: password, PARTNER_API_WEBHOOK_KEY: key },
    })
  }

  const variables: Record<string, string> = {}
  for (const { name, value, valueFrom } of container.env) {
    variables[name] = value ?? valueFrom.secretKeyRef.key
  }
  t.same(Object.keys(variables), ['PARTNER_API_STORE', 'PGPASSWORD', 'PARTNER_API_WEBHOOK_KEY'])
  t.same(Object.keys(compose.services['partner-api'].environment), Object.keys(variables))
  const { containerPort } = container.ports[1]
  const args: string[] = container.args
  t.equal(args[args.indexOf('--metrics') + 1], `0.0.0.0:${containerPort}`)
  const metrics = await Promise.all([freePort(), freePort()])
  const servers = await Promise.all([
    ...metrics.map((port) =>
      start(args.map((word) => word.replace(`0.0.0.0:${containerPort}`, `127.0.0.1:${port}`)), variables)
    ),
    start(['serve', '--trust-proxies', '1'], compose.services['partner-api'].environment),
  ])
  t.teardown(() => servers.forEach(({ child }) => child.kill('SIGKILL')))
  for (const { url } of servers) t.equal((await fetch(`${url}/service/health`)).status, 200)

  const ask = (path: string) =>
    fetch(`http://127.0.0.1:${metrics[0]}${path}`).then(({ status }) => status, () => 'refused')
  for (const probe of ['startupProbe', 'readinessProbe', 'livenessProbe']) {
    t.equal(container[probe].httpGet.port, 'metrics')
    t.equal(await ask(container[probe].httpGet.path), 200, probe)
  }
  const begun = performance.now()
  const [first, ...others] = servers
  for (const { child } of servers) child.kill('SIGTERM')
  await until(
    async () => await ask(container.readinessProbe.httpGet.path) === 503,
    'the server to be not ready',
  )
  t.equal(await ask(container.livenessProbe.httpGet.path), 200, 'but alive')
  t.equal((await fetch(`${first!.url}/service/health`)).status, 200, 'and it still answers')
  for (const { ended } of [first!, ...others]) t.equal((await ended).code, 0)
  const seconds = (performance.now() - begun) / 1000
  t.ok(seconds >= Number(args[args.indexOf('--drain-delay') + 1]), `${seconds} s`)
  t.ok(pod.terminationGracePeriodSeconds >= Number(args.at(-1)) + 9)
})
