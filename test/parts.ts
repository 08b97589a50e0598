/**
 * The parts of `npm run test:all` that `npm test` leaves out, because they need other runtimes, frameworks or programs of
 * the machine, or minutes.
 *
 * `node test/parts.ts` prints the Debian packages of the programs that are missing.
 */
import { existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'

interface Part {
  /** Folders and files below `test`. */
  readonly tests: readonly string[]
  /** What the tests need, a command or a path, with its Debian packages. Without it, some are skipped. */
  readonly needs?: Readonly<Record<string, string>>
}

export const PARTS: Readonly<Record<string, Part>> = {
  /** Bun, Deno, workerd and older Nodes. */
  runtimes: {
    tests: ['runtimes/', 'adapters/workers.test.ts', 'cli/restarts.test.ts', 'cli/runtimes.test.ts'],
  },
  /** Poolers, standbys, servers that are killed, and PostgreSQL's own tools. */
  postgres: {
    tests: [
      'cli/postgres-tools.test.ts',
      'stores/postgres-hosts.test.ts',
      'stores/postgres-pooler.test.ts',
      'stores/postgres-replicas.test.ts',
      'stores/postgres-settings.test.ts',
      'stores/postgres-signups.test.ts',
    ],
    needs: { pgbouncer: 'pgbouncer', psql: 'postgresql', openssl: 'openssl' },
  },
  /** Several processes on one store, programs that are killed, and large stores. */
  load: {
    tests: [
      'cli/many-keys-load.test.ts',
      'cli/restore-load.test.ts',
      'cli/reuse-port.test.ts',
    ],
  },
  /** The pages in Chromium, with axe. */
  browser: { tests: ['browser/'], needs: { chromium: 'chromium' } },
  /** The examples in their frameworks, in PHP and in WordPress. */
  embedding: {
    tests: ['embedding/'],
    needs: {
      chromium: 'chromium',
      php: 'php-cli php-curl php-mysql',
      '/usr/share/wordpress': 'wordpress',
      mariadbd: 'mariadb-server-core',
    },
  },
  /** The tarballs, on every runtime. */
  package: { tests: ['package/'] },
  /** Other people's OpenAPI tools, and the code samples of the reference page. */
  openapi: {
    tests: ['openapi/'],
    needs: { curl: 'curl', jq: 'jq', php: 'php-cli php-curl', python3: 'python3' },
  },
  /** Proxies, containers, systemd, Kubernetes, Prometheus and traces. */
  deploy: {
    tests: [
      'deploy/',
      'telemetry/',
      'integration/cluster.test.ts',
      'integration/deploy',
      'integration/monitoring.test.ts',
    ],
    needs: {
      caddy: 'caddy',
      'docker-compose': 'docker-compose',
      haproxy: 'haproxy',
      nginx: 'nginx',
      patroni: 'patroni',
      podman: 'podman',
      promtool: 'prometheus',
      'systemd-analyze': 'systemd',
      '/usr/lib/python3/dist-packages/prometheus_client': 'python3-prometheus-client',
    },
  },
  /** The shells, certificates, namespaces and ports of a machine, and the docs' commands that need curl. */
  machine: {
    tests: [
      'cli/completions.test.ts',
      'cli/stop-start.test.ts',
      'cli/tls.test.ts',
      'integration/docs-curl.test.ts',
    ],
    needs: { curl: 'curl', fish: 'fish', jq: 'jq', openssl: 'openssl', script: 'bsdutils', zsh: 'zsh' },
  },
}

/** The name of the part that a test file belongs to. */
export function partOf(file: string): string | undefined {
  const path = file.replace(/^test\//, '')
  return Object.keys(PARTS).find((name) => PARTS[name]!.tests.some((start) => path.startsWith(start)))
}

/** The Debian packages of the commands and paths that this machine lacks. */
export function missingPackages(needs: Readonly<Record<string, string>> = {}): string[] {
  // Debian keeps some programs where only root looks.
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  const isThere = (need: string) =>
    existsSync(need) || folders.some((folder) => existsSync(join(folder, need)))
  return Object.entries(needs).filter(([need]) => !isThere(need)).map(([, debian]) => debian)
}

if (import.meta.main) {
  const missing = new Set(Object.values(PARTS).flatMap(({ needs }) => missingPackages(needs)))
  if (missing.size > 0) console.log([...missing].join('\n'))
}
