/** A WordPress on loopback, with a database server of its own, in a temporary folder. */
import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { userInfo } from 'node:os'
import { basename, delimiter, join } from 'node:path'
import process from 'node:process'
import { freePort } from '../postgres/free-port.ts'
import { until } from '../postgres/until.ts'
import { run } from '../package/installed.ts'
import { temporaryFolder } from '../support/cli-program.ts'

const env = { ...process.env, PATH: `${process.env['PATH']}${delimiter}/usr/sbin` }
/** Where Debian installs it. */
const SOURCE = '/usr/share/wordpress'

/** @returns Why there is no WordPress on this machine; undefined where there is one. */
export function hasWordPress(): string | undefined {
  for (const program of ['php', 'mariadbd']) {
    if (spawnSync(program, ['--version'], { env }).error) return `${program} is not installed`
  }
  const { stdout } = spawnSync('php', ['-r', `echo extension_loaded('mysqli') && is_dir('${SOURCE}');`])
  return String(stdout) === '1' ? undefined : 'WordPress is not installed'
}

export interface WordPress {
  readonly url: string
  /** What PHP reported, and what its web server logged. */
  log(): string
  /** Runs PHP code in WordPress, and other code before WordPress starts. @returns What the first returns. */
  evaluate(code: string, before?: string): Promise<unknown>
  end(): Promise<void>
}

/** The administrator. */
export const ADMINISTRATOR = { log: 'admin', pwd: 'correct horse' }

/**
 * @param plugin Folder of the plugin, which is active. Its main file has the same name.
 * @param pages The content of pages, by their titles.
 * @param code PHP code that runs with every page.
 */
export async function startWordPress(
  plugin: string,
  pages: Readonly<Record<string, string>>,
  code = '',
): Promise<WordPress> {
  const folder = temporaryFolder()
  const site = join(folder, 'site')
  cpSync(SOURCE, site, { recursive: true })
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  write(site, url, plugin, code)
  // Pages load in a fifth of the time when PHP keeps what it compiled.
  const cache = join(folder, 'compiled')
  mkdirSync(cache)
  const options = ['opcache.enable_cli=1', `opcache.file_cache=${cache}`, 'display_errors=0'].flatMap((
    pair,
  ) => ['-d', pair])

  const database = startDatabase(folder)
  const evaluate = async (code: string, before = ''): Promise<unknown> => {
    const program = `$_SERVER += ['HTTP_HOST' => '127.0.0.1:${port}', 'REQUEST_URI' => '/'];
      ${before}
      require 'wp-load.php';
      echo "\\n" . json_encode((function () { ${code} })());`
    const { stdout } = await run('php', [...options, '-r', program], site)
    return JSON.parse(stdout.split('\n').at(-1) ?? '')
  }
  try {
    await database.started
    const install = `
      require ABSPATH . 'wp-admin/includes/upgrade.php';
      add_filter('pre_wp_mail', '__return_true');
      wp_install('Partner site', '${ADMINISTRATOR.log}', 'admin@example.com', false, '', '${ADMINISTRATOR.pwd}');
      activate_plugin('${basename(plugin)}/${basename(plugin)}.php');
      foreach (json_decode('${JSON.stringify(pages)}', true) as $name => $content) {
        wp_insert_post(['post_type' => 'page', 'post_status' => 'publish', 'post_title' => $name, 'post_content' => $content]);
      }`
    await evaluate(install, "define('WP_INSTALLING', true);")
  } catch (error) {
    await database.end()
    throw error
  }
  const server = startProgram('php', [...options, '-S', `127.0.0.1:${port}`, '-t', site])
  await until(() => server.log().includes('started'), 'PHP to listen')
  return {
    url,
    log: () => server.log() + readFileSync(join(folder, 'debug.log'), 'utf8'),
    evaluate,
    async end() {
      await server.end()
      await database.end()
    },
  }
}

function write(site: string, url: string, plugin: string, code: string): void {
  const secrets = ['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'].flatMap((
    name,
  ) => [`${name}_KEY`, `${name}_SALT`])
  const settings = {
    DB_NAME: 'wordpress',
    DB_USER: 'root',
    DB_PASSWORD: '',
    DB_HOST: `localhost:${join(site, '..', 'socket')}`,
    WP_HOME: url,
    WP_SITEURL: url,
    // Nothing leaves this machine.
    WP_HTTP_BLOCK_EXTERNAL: true,
    WP_ACCESSIBLE_HOSTS: '127.0.0.1',
    DISABLE_WP_CRON: true,
    AUTOMATIC_UPDATER_DISABLED: true,
    WP_DEBUG: true,
    WP_DEBUG_DISPLAY: false,
    WP_DEBUG_LOG: join(site, '..', 'debug.log'),
    WP_DEFAULT_THEME: 'plain',
    ...Object.fromEntries(secrets.map((name) => [name, `${name} of a test`])),
  }
  const content = join(site, 'wp-content')
  mkdirSync(join(content, 'mu-plugins'))
  mkdirSync(join(content, 'themes/plain'), { recursive: true })
  cpSync(plugin, join(content, 'plugins', basename(plugin)), { recursive: true })
  const files = {
    [join(site, 'wp-config.php')]: `${
      Object.entries(settings).map(([name, value]) => `define('${name}', ${JSON.stringify(value)});`).join(
        '\n',
      )
    }
      $table_prefix = 'wp_';
      if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');
      require ABSPATH . 'wp-settings.php';`,
    [join(content, 'mu-plugins/test.php')]: code,
    [join(content, 'themes/plain/index.php')]:
      `?><!doctype html><title>Plain</title><?php wp_head(); ?><main><?php
      while (have_posts()) { the_post(); the_content(); } ?></main><?php
      wp_footer();`,
  }
  for (const [path, text] of Object.entries(files)) writeFileSync(path, `<?php\n${text}\n`)
  writeFileSync(join(content, 'themes/plain/style.css'), '/* Theme Name: Plain */\n')
}

/** Without tables of its own, MariaDB starts in a fraction of a second, and lets everybody in who can open its socket. */
function startDatabase(folder: string) {
  const data = join(folder, 'data')
  mkdirSync(join(data, 'wordpress'), { recursive: true })
  const server = startProgram('mariadbd', [
    '--no-defaults',
    `--user=${userInfo().username}`,
    `--datadir=${data}`,
    `--socket=${join(folder, 'socket')}`,
    `--pid-file=${join(folder, 'pid')}`,
    '--skip-networking',
    '--skip-grant-tables',
    '--innodb-log-file-size=4M',
    '--innodb-buffer-pool-size=16M',
    '--innodb-flush-log-at-trx-commit=0',
    '--innodb-fast-shutdown=2',
    '--performance-schema=off',
  ])
  return {
    ...server,
    started: until(() => server.log().includes('ready for connections'), 'MariaDB to start'),
  }
}

function startProgram(program: string, words: readonly string[]) {
  const child = spawn(program, words, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => said += text)
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()))
  return {
    log(): string {
      if (child.exitCode !== null) throw new Error(`${program} ended: ${said}`)
      return said
    },
    async end() {
      child.kill('SIGKILL')
      await ended
    },
  }
}
