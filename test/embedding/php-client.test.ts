/** Runs the client in PHP on a service that also fails. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import t from 'tap'
import { createWebhookSecret, signWebhook } from '../../adapters/webhooks/secrets.ts'
import { MANIFEST } from '../package/installed.ts'
import { cleanEnv, ending } from '../support/cli-program.ts'
import { openPartnerProject, sentWithOneKey } from './partner-project.ts'
import { HOSTILE } from './recorder.ts'

const partner = await openPartnerProject(t)
const { folder, key, service, requests, statuses, cli, signups, see, end } = partner

/** Makes `$api`, and `show` and `attempt`, which print JSON on a line. */
const head = `namespace PartnerApi;
require 'PartnerApi.php';
function show(mixed $value): void { echo json_encode($value, JSON_UNESCAPED_SLASHES), "\\n"; }
function attempt(callable $call): void {
  try { show($call()); } catch (ApiException | WebhookException | \\InvalidArgumentException | \\DomainException $error) { show($error->getMessage()); }
}
function usleep(int $delay): void { if (getenv('SHOW')) show($delay / 1e6); }
final class Files {
  function get(string $name) { return @file_get_contents("kept-$name"); }
  function set(string $name, string $text) { file_put_contents("kept-$name", $text); }
}
$connect = fn(...$options) => new Client(getenv('PARTNER_API_URL'), getenv('PARTNER_API_KEY'), 'demo', ...$options);
$api = $connect(cache: new Files());
$slugs = fn(iterable $rows) => array_column(is_array($rows) ? $rows : iterator_to_array($rows, false), 'slug');
`

const cases = {
  pages: `for ($i = 0; $i < 2; $i++) show($slugs($api->profiles(['limit' => 2, 'country' => ['DE', 'FR']])));
show($slugs($api->profiles(['limit' => 2])->first()));`,
  delays:
    `for ($i = 0; $i < 2; $i++) attempt(fn() => array_column($api->countries(['in_use' => true])->getArrayCopy(), 'profile_count'));`,
  dates: `$soon = gmdate('D, d M Y H:i:s', time() + 90) . ' GMT';
foreach ([$soon, 'Sun, 06 Nov 1994 08:49:37 GMT', '7', 'soon', ''] as $field) show((new Response(503, ['retry-after' => $field]))->retryAfter);`,
  signup: `show($api->signUp(['email' => 'mail@example.com', 'name' => 'Jane']));`,
  problem: `try { $api->signUp(['email' => 'jane']); }
catch (Problem $problem) { show([$problem->problemCode, $problem->errors, $problem->getMessage(), $problem->response->requestId]); }
attempt(fn() => $connect()->with(retries: 0)->profile('nobody'));
$key = getenv('PARTNER_API_KEY');
foreach ([['nowhere', 'k', 'demo'], ['https://api.example', "$key$key\\n.", 'demo'], ['https://api.example', 'k', $key], ['https://user:word@api.example', 'k', 'demo']] as $arguments)
  attempt(fn() => new Client(...$arguments));
foreach (['', ' ', "a\\r\\nX-Other: 1"] as $name) attempt(fn() => $api->signUp([], $name));`,
  hostile: `$timeout = (float) getenv('TIMEOUT');
attempt(fn() => $slugs($connect(timeout: $timeout)->profiles(['country' => 'DE'])));
attempt(fn() => $api->with(timeout: $timeout)->signUp(['email' => 'jane@example.com', 'name' => 'Jane']));
attempt(fn() => $slugs($api->with(timeout: $timeout)->profiles(['country' => 'DE'])));`,
  response: `for ($i = 0; $i < 2; $i++) {
  $response = $api->signUp(['email' => 'twice@example.com', 'name' => 'Twice'], '0')->response;
  show([$response->status, $response->replayed, $response->requestId, $response->rateLimits()]);
  foreach ($response->headers as $name => $_) if (!preg_match('/^[a-z-]+$/D', $name)) show($name);
}`,
  rotation: `attempt(fn() => $api->rotateKey(fn() => throw new \\DomainException('disk full')));
try { $api->rotateKey(fn() => false); } catch (\\RuntimeException $error) { show($error->getMessage()); }
$old = $api->verifyKey()['key'];
$rotation = $api->rotateKey(function (string $key) use (&$stored) { $stored = $key; }, 60);
show([$old['rotation'] !== null, isset($rotation['key']), $rotation['id'] === $api->verifyKey()['key']['id'], str_contains($stored, $rotation['id'])]);`,
  'another server': `show($api->get('/words'));
attempt(fn() => $api->get('/short'));
$stored = [];
attempt(fn() => $api->rotateKey(function ($key) use (&$stored) { $stored[] = $key; }));
show($stored);`,
  webhook: `foreach (json_decode(file_get_contents('deliveries.json'), true) as [$secret, $headers, $body])
  attempt(fn() => verifyWebhook($secret, $headers, $body));`,
  options:
    `$bug = function (...$arguments) { show(print_r($arguments, true)); throw new \\RuntimeException('a bug'); };
$api = $connect(userAgent: 'acme/2', onRequest: $bug, onResponse: $bug);
$api->with(headers: ['traceparent' => '00-1-2-01', 'X-SERVICE-partner-key' => 'other'])->plans();`,
}

const probe = ['-r', 'exit(PHP_VERSION_ID >= 80100 && extension_loaded("curl") ? 0 : 1);']
const missing = spawnSync('php', probe).status !== 0 && 'PHP is not installed'
await t.test('PHP', { skip: missing }, async (t) => {
  const cwd = join(folder, 'php')
  const env = { PARTNER_API_URL: service.url, PARTNER_API_KEY: key }
  async function run(words: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const child = spawn('php', words, { cwd, env: cleanEnv({ ...env, ...more }) })
    child.stdin.end()
    const ended = await ending(child)
    see(ended.stdout, ended.stderr)
    return ended
  }
  /** @returns The lines of JSON that a case prints. */
  async function evaluate(part: keyof typeof cases, more?: Readonly<Record<string, string>>) {
    const { stdout, stderr } = await run(['-r', head + cases[part]], more)
    if (stderr !== '') throw new Error(stderr)
    return stdout.trim().split('\n').map((line) => JSON.parse(line))
  }
  const issue = async (...words: string[]) =>
    (await cli('keys', 'issue', 'demo', '--name', 'Another', ...words)).key as string

  await t.test('the code of its README runs', async (t) => {
    const readme = readFileSync(join(cwd, 'README.md'), 'utf8')
    const [, example = ''] = /```php\n<\?php\n(.*?)```/s.exec(readme) ?? []
    const { stdout, stderr } = await run(['-r', example.replace("'acme'", "'demo'")])
    t.match(stdout, /Töchter\n.*\nsgn_\w+\n$/s)
    t.equal(stderr, '')
    requests()
  })
  await t.test('a page, a form and a rotation of its README run', async (t) => {
    await cli('partners', 'update', 'demo', '--self-service', 'rotate')
    const readme = readFileSync(join(cwd, 'README.md'), 'utf8')
    const [start = '', ...others] = Array.from(
      readme.matchAll(/```php\n(.*?)```/gs),
      ([, block = '']) => block,
    )
    const head = start.slice(0, start.indexOf('try {')).replace('<?php', '').replace("'acme'", "'demo'")
    const given = `$_GET = ['q' => 'universite']; $_POST = ['email' => 'form@example.com', 'name' => 'Form'];`
    const { stdout, stderr } = await run(
      ['-r', `${head}${given}${others.slice(0, 3).join('')}echo $signup['id'];`],
      { PARTNER_API_KEY: await issue() },
    )
    t.equal(stderr, '')
    t.match(stdout, /^(<li>.+<\/li>\n){6}sgn_\w+$/)
    t.match(readFileSync(join(cwd, 'acme.key'), 'utf8'), /^spk_live_/)
    if (process.platform !== 'win32') t.equal(statSync(join(cwd, 'acme.key')).mode & 0o777, 0o600)
    requests()
  })
  await t.test('the first call of the docs runs', async (t) => {
    const { stdout, stderr } = await run(['first-call.php'])
    t.match(stdout, /Bäckerei Weißenfluß & Töchter\n/)
    t.equal(stderr, '')
    t.match(requests(), [{ line: 'GET /service/public/profiles?partner=demo&country=DE', status: 200 }])
  })
  await t.test('lists have all pages, which are revalidated', async (t) => {
    const [first, second, page] = await evaluate('pages')
    t.ok(first.length > 4)
    t.equal(new Set(first).size, first.length)
    t.same(second, first)
    t.equal(page.length, 2)
    const pages = Math.ceil(first.length / 2)
    t.same(statuses(), [...Array(pages).fill(200), ...Array(pages).fill(304), 200])
    const other = { PARTNER_API_KEY: await issue() }
    t.same((await evaluate('pages', other))[0], first)
    t.equal(statuses()[0], 200, 'another key finds nothing in the cache')
  })
  await t.test('waits as long as a limit asks', async (t) => {
    const limitedTo = async (limit: string) => {
      const [counts, ...rest] = await evaluate('delays', {
        PARTNER_API_KEY: await issue('--limit', limit),
        SHOW: '1',
      })
      t.notOk(counts.includes(0))
      return rest
    }
    t.match(await limitedTo('key=1/600'), [/rate_limited/], 'ten minutes are too long')
    t.same(statuses(), [200, 429])
    const [first, second, end] = await limitedTo('key=1/60')
    for (const seconds of [first, second]) t.ok(seconds >= 1 && seconds <= 60, `${seconds} s`)
    t.match(end, /rate_limited/)
    t.same(statuses(), [200, 429, 429, 429])
  })
  await t.test('reads seconds and dates of Retry-After', async (t) => {
    const [soon, ...others] = await evaluate('dates')
    t.ok(soon > 60 && soon <= 90, `${soon} s`)
    t.same(others, [0, 7, null, null])
  })
  await t.test('submits one signup when the response is lost', async (t) => {
    const before = (await signups('mail@example.com')).length
    service.mode = 'lose'
    t.match(await evaluate('signup'), [{ id: /^sgn_/, status: 'received' }])
    sentWithOneKey(t, requests())
    t.equal((await signups('mail@example.com')).length, before + 1)
  })
  await t.test('reports problems and wrong arguments', async (t) => {
    const [[problem, errors, message, id], missing, ...wrong] = await evaluate('problem')
    t.equal(problem, 'invalid_body')
    t.match(errors, [{ pointer: '/email' }, { pointer: '/name' }])
    t.match(message, /\/email: must be .*; \/name: is required\. \(invalid_body, req_/)
    t.ok(message.includes(id))
    t.match(missing, /profile_not_found/)
    const url = /^url must be /
    const name = /^idempotency.key must be /
    t.match(wrong, [url, /^key must be one key/, /^partner must be the slug/, url, name, name, name])
    t.equal(requests().length, 2)
  })
  await t.test('results have their response', async (t) => {
    const limits = [{ policy: 'key', quota: 600, window_seconds: 60 }, { policy: 'signup', quota: 20 }]
    const [first, second] = await evaluate('response')
    t.match(first, [201, false, /^req_/, limits])
    t.match(second, [201, true, /^req_/, limits])
    t.ok(first[3][0].remaining < 600 && first[3][0].resets_in_seconds <= 60)
    requests()
  })
  await t.test('names version and program; hooks see no key, and break nothing', async (t) => {
    const shown = await evaluate('options')
    t.equal(shown.length, 2)
    t.match(shown.join(), /GET.*public\/plans/s)
    t.match(requests(), [{
      status: 200,
      headers: {
        'user-agent': `partner-api-php/${MANIFEST.version} acme/2`,
        'service-version': '2026-11-20',
        'x-service-partner-key': key,
        traceparent: '00-1-2-01',
      },
    }])
  })
  await t.test('a key is replaced once the new one is stored', async (t) => {
    await cli('partners', 'update', 'demo', '--self-service', 'rotate')
    const [failure, other, result] = await evaluate('rotation', { PARTNER_API_KEY: await issue() })
    t.equal(failure, 'disk full')
    t.equal(other, 'The new key was not stored.')
    t.same(result, [true, false, true, true])
    requests()
  })
  await t.test('what another server sends: texts, a part of a body, no key', async (t) => {
    const paths: (string | undefined)[] = []
    const other = createServer(({ url = '', socket }, response) => {
      const [path] = url.slice('/service'.length).split('?')
      paths.push(path)
      if (path === '/words') return void response.end('{"data":["a","b"]}')
      if (path !== '/short') return void response.end('{"data":{}}')
      response.writeHead(200, { 'content-length': 99 }).write('{"data":{}}', () => socket.end())
    })
    t.teardown(() => other.close())
    await once(other.listen(0, '127.0.0.1'), 'listening')
    const PARTNER_API_URL = `http://127.0.0.1:${(other.address() as AddressInfo).port}`
    const [words, short, rotation, stored] = await evaluate('another server', { PARTNER_API_URL })
    t.same([words, rotation, stored], [['a', 'b'], 'The response has no key.', []])
    t.match(short, /did not answer as expected/)
    t.equal(paths.filter((path) => path === '/short').length, 3, 'a part is no answer: it is retried')
  })
  await t.test('verifies webhooks', async (t) => {
    const secret = createWebhookSecret()
    const other = createWebhookSecret()
    const body = '{"type":"signup.created","timestamp":"2026-11-20T09:00:00.123Z","data":{"name":"Jäne"}}'
    const now = Math.floor(Date.now() / 1000)
    const deliver = (secrets: readonly string[], at = now) => ({
      'Webhook-Id': 'msg_1',
      'Webhook-Timestamp': String(at),
      'Webhook-Signature': signWebhook(secrets, 'msg_1', at, body),
    })
    const good = [
      [secret, deliver([secret])],
      [[other, `${secret}\n`], deliver([createWebhookSecret(), secret])],
    ]
    const refused = [
      [secret, deliver([other])],
      [secret, { ...deliver([secret]), 'Webhook-Id': 'msg_2' }],
      [secret, { ...deliver([secret]), 'Webhook-Signature': 'é v1,' }],
      [secret, {}],
      [secret, deliver([secret], now - 310)],
      [secret, deliver([secret], now + 310)],
      ['whsec_', deliver([secret])],
    ]
    const deliveries = [...good, ...refused].map((delivery) => [...delivery, body])
    writeFileSync(
      join(cwd, 'deliveries.json'),
      JSON.stringify([...deliveries, [secret, deliver([secret]), `${body} `]]),
    )
    const event = { id: 'msg_1', type: 'signup.created', data: { name: 'Jäne' } }
    const signature = /^No signature/
    const time = /^webhook-timestamp is not/
    const wrong = /^secret must be whsec_/
    const errors = [...Array(4).fill(signature), time, time, wrong, signature]
    const outcomes = await evaluate('webhook')
    t.match(outcomes, [event, event, ...errors])
    t.equal(outcomes.length, 10)
  })
  await t.test('says when the service is down', async (t) => {
    service.mode = 'down'
    t.match((await evaluate('delays'))[0], 'did not answer as expected')
    t.equal(requests().length, 6)
  })
  await t.test('fails on hostile answers, and keeps none of them', async (t) => {
    service.mode = 'pass'
    const [, , before] = await evaluate('hostile', { TIMEOUT: '60' })
    t.ok(before.length > 1)
    for (const mode of HOSTILE) {
      service.mode = mode
      const [read, signup, again] = await evaluate('hostile', { TIMEOUT: mode === 'drip' ? '0.5' : '60' })
      t.match([read, signup], [/\w/, /\w/], mode)
      t.match(again, mode === 'unmodified' ? before : /\w/, mode)
    }
    service.mode = 'pass'
    t.same((await evaluate('hostile', { TIMEOUT: '60' }))[2], before)
    t.notOk(requests().some(({ line }) => line.includes('redirected')), 'a redirect is not followed')
  })
})

await t.test('no page, URL or log holds a key', end)
