/** Runs the examples for partners on a service that also fails, and checks what people see. */
import { spawn, spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import t from 'tap'
import type { Test } from 'tap'
import { cleanEnv, ending, programOn, startServing, stopServing } from '../support/cli-program.ts'
import { createProject, start, storeIn } from './project.ts'
import { startRecorder } from './recorder.ts'
import { ADMINISTRATOR, hasWordPress, startWordPress } from './wordpress.ts'

const project = await createProject()
t.teardown(() => project.remove())
const { folder, key } = await project.open('shared')
const store = storeIn(folder)
const served = await startServing(['serve', '--port', '0', '--log', 'all', '--max-staleness', '0'], store)
const service = await startRecorder(served.url)
t.teardown(() => service.close())
const examples = join(folder, 'partners')

/** All that people and programs can see: pages, logs and URLs. */
const seen: string[] = []

function requests() {
  const taken = service.take()
  seen.push(...taken.map(({ line, body }) => line + body))
  return taken
}
const statuses = () => requests().map(({ status }) => status)

async function cli(...words: string[]) {
  const { code, data, stdout } = await programOn(store).json(...words)
  if (code !== 0) throw new Error(stdout)
  return data
}

async function signups(email: string) {
  return (await cli('signups', 'list')).filter((row: { email: string }) => row.email === email)
}

/** Compares the attempts of a signup whose first response was lost. */
function holdsOneKey(t: Test): void {
  const attempts = requests().filter(({ line }) => line === 'POST /service/partner/signups')
  t.same(attempts.map(({ status }) => status), [201, 201])
  t.match(attempts[0]?.headers['idempotency-key'], /./)
  t.equal(attempts[1]?.headers['idempotency-key'], attempts[0]?.headers['idempotency-key'])
  t.equal(attempts[1]?.body, attempts[0]?.body)
}

await t.test('WordPress', { skip: hasWordPress() ?? false }, async (t) => {
  const plugin = join(examples, 'wordpress/partner-directory.php')
  const clock = join(folder, 'minutes')
  const wordpress = await startWordPress(
    plugin,
    {
      directory: '[partner_directory country="DE,fr" limit="2"]',
      outage: '[partner_directory limit="3"]',
      refusal: '[partner_directory limit="4"]',
      mistake: '[partner_directory limit="many"]',
      signup: '[partner_signup]',
    },
    // The plugin's own clock, and a language of which the plugin must make a tag.
    `namespace Partner_Directory;
    function time() { return \\time() + 60 * (int) @file_get_contents('${clock}'); }
    add_filter('locale', function () { return 'de_DE_formal'; });`,
  )
  t.teardown(() => wordpress.end())
  const waitMinutes = (minutes: number) => writeFileSync(clock, String(minutes))

  const cookies = new Map<string, string>()
  async function load(path: string, form?: Record<string, string>) {
    const response = await fetch(wordpress.url + path, {
      headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
      redirect: 'manual',
      ...(form ? { method: 'POST', body: new URLSearchParams(form) } : {}),
    })
    for (const line of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const page = await response.text()
    seen.push(page, String(response.headers.get('location')))
    const html = /<main>(.*)<\/main>/s.exec(page)?.[1] ?? page
    return { status: response.status, html, text: textOf(html) }
  }
  const visit = (title: string, form?: Record<string, string>) => load(`/?pagename=${title}`, form)
  const nonceIn = (html: string) => /nonce\]?" value="(\w+)"/.exec(html)?.[1] ?? ''

  await t.test('without settings', async (t) => {
    t.match((await visit('directory')).text, 'The directory is not available at the moment.')
    t.match((await visit('signup')).text, /Name E-mail Company Message Sign up/)
    t.same(requests(), [])
  })

  await load('/wp-login.php')
  await load('/wp-login.php', ADMINISTRATOR)
  const settingsPage = '/wp-admin/options-general.php?page=partner_directory'
  async function save(settings: { readonly url?: string; readonly partner?: string; readonly key?: string }) {
    const { html } = await load(settingsPage)
    const { url = service.url, partner = 'demo', key = '' } = settings
    const { status } = await load('/wp-admin/options.php', {
      option_page: 'partner_directory',
      action: 'update',
      _wpnonce: nonceIn(html),
      _wp_http_referer: settingsPage,
      'partner_directory[url]': url,
      'partner_directory[partner]': partner,
      'partner_directory[key]': key,
    })
    if (status !== 302) throw new Error(`options.php: ${status}`)
    return (await load(`${settingsPage}&settings-updated=true`)).text
  }
  const saved = () =>
    wordpress.evaluate("return get_option('partner_directory');") as Promise<{ key?: string }>

  await t.test('a key that the service refuses is not saved', async (t) => {
    await cli('partners', 'create', 'other', '--name', 'Other')
    t.match(
      await save({ key: 'spk_live_oops' }),
      'Not saved. The key is not valid. Copy the whole key again.',
    )
    t.match(
      await save({ key, partner: 'other' }),
      /Not saved\. The key does not belong .* Check the partner\./,
    )
    const disabled = await cli('keys', 'issue', 'demo', '--name', 'Disabled')
    await cli('keys', 'disable', disabled.id)
    t.match(
      await save({ key: disabled.key }),
      'Not saved. The key is disabled. Ask the operator to enable it.',
    )
    t.same(statuses(), [401, 403, 401])
    for (
      const [mode, text] of Object.entries({
        redirect: 'status 302',
        page: 'status 502',
        down: 'Check the address',
      })
    ) {
      service.mode = mode as typeof service.mode
      t.match(await save({ key }), new RegExp(`Not saved\\..*${text}`))
      t.equal(requests().length, 1, 'the key is sent once, and not to where a redirect points')
    }
    service.mode = 'pass'
    t.match(await save({ key, url: 'http://api.example' }), 'Not saved. The address must start with https://')
    t.match(await save({ key, partner: key }), 'Not saved. The partner is a name')
    t.match(await save({}), 'Not saved. Enter the key.')
    t.same(requests(), [])
    t.equal((await saved()).key, '')
  })

  await t.test('a valid key is saved, and never shown', async (t) => {
    const few = await cli('keys', 'issue', 'demo', '--name', 'Few', '--scope', 'read:profiles')
    const warning = 'Saved. Ask the operator for these modules: countries, pricing, signup.'
    t.match(await save({ key: few.key }), warning)
    const text = await save({ key: `${key}\n` })
    t.match(text, 'Settings saved.')
    t.match(text, `In use: Demo partner, Demo key (…${key.slice(-4)}).`)
    t.match(requests(), [{
      line: 'POST /service/developer/verify-key',
      body: '{"partner":"demo"}',
      status: 200,
    }, {}])
    t.match(await saved(), { url: service.url, partner: 'demo', key })
    t.same(
      await wordpress.evaluate(
        'global $wpdb; return $wpdb->get_col("SELECT autoload FROM $wpdb->options WHERE option_name = \'partner_directory\'");',
      ),
      ['no'],
    )
    t.match(await save({ key: 'spk_live_oops' }), 'Not saved.')
    t.equal((await saved()).key, key, 'a refused key does not replace one that works')
    t.match(await save({}), 'Settings saved.')
    t.equal((await saved()).key, key, 'an empty field keeps the key')
    requests()
    t.match(await save({ url: served.url }), 'Not saved. Enter the key.', 'but not for another address')
    t.same(requests(), [])
  })

  await t.test('the directory', async (t) => {
    t.match((await visit('mistake')).text, 'limit: must be', 'administrators read what is wrong')
    cookies.clear()
    t.match((await visit('mistake')).text, 'not available', 'visitors do not')
    requests()
    const first = await visit('directory')
    t.match(first.html, /^<div class="partner-directory"><ul>(<li><strong>.+?<\/li>){2}<\/ul><a rel="next"/m)
    t.match(first.text, 'Bäckerei Weißenfluß & Töchter Cafés & bakeries, Germany Sourdough rye')
    const [request] = requests()
    t.equal(request?.line, 'GET /service/public/profiles?partner=demo&country=DE&country=fr&limit=2')
    t.equal(request?.headers['x-service-partner-key'], key)

    t.equal((await visit('directory')).html, first.html)
    t.same(requests(), [], 'a copy of less than five minutes is shown')
    waitMinutes(6)
    t.equal((await visit('directory')).html, first.html)
    t.same(statuses(), [304], 'an older one is revalidated')

    const next = /href="([^"]+)"/.exec(first.html)?.[1]?.replaceAll('&#038;', '&') ?? ''
    const second = await load(next)
    t.match(second.html, /<li>/)
    t.not(second.text, first.text)
    t.same(statuses(), [200])
    t.equal(
      (await load(next.replace('~', 'x~'))).text,
      first.text,
      'a cursor that was not signed here is not sent',
    )
    t.same(requests(), [])
  })

  await t.test('the directory while the service is down', async (t) => {
    const [before, shared] = [await visit('outage'), await visit('refusal')]
    requests()
    for (const mode of ['down', 'page'] as const) {
      service.mode = mode
      waitMinutes(mode === 'down' ? 12 : 13)
      for (const visitor of ['one', 'another']) t.equal((await visit('outage')).html, before.html, visitor)
      t.equal(requests().length, 1, 'only one visitor waits for it')
    }
    service.mode = 'pass'
    const id = key.split('_')[2] ?? ''
    await cli('keys', 'disable', id)
    t.not((await visit('refusal')).text, shared.text)
    t.match((await visit('refusal')).text, 'not available', 'a refusal ends the use of the copy')
    t.same(statuses(), [401])
    await cli('keys', 'enable', id)
    waitMinutes(14)
    t.equal((await visit('refusal')).html, shared.html)
    requests()
  })

  await t.test('the signup form', async (t) => {
    const { html } = await visit('signup')
    t.match(html, '<option value="DE">Deutschland</option>')
    t.match(html, '<option value="starter">Starter</option>')
    t.match(requests().map(({ line }) => line), [
      'GET /service/public/countries?partner=demo&locale=de-DE',
      /plans/,
    ])
    const form = (fields: Record<string, string>, nonce = nonceIn(html)) => {
      const all = {
        name: '',
        email: '',
        company: '',
        country: '',
        plan: '',
        message: '',
        website: '',
        ...fields,
        nonce,
      }
      return Object.fromEntries(
        Object.entries(all).map(([name, value]) => [`partner_signup[${name}]`, value]),
      )
    }
    const jane = { name: "Jane O'Brien", email: 'jane@example.com', country: 'DE', message: 'Two\nlines' }

    await t.test('errors stand at their fields, which keep their values', async (t) => {
      const wrong = await visit('signup', form({ ...jane, email: 'jane', name: '"><script>', plan: 'gone' }))
      t.match(wrong.text, 'Please correct the marked fields.')
      t.match(
        wrong.html,
        /id='partner-signup-email'[^>]* aria-describedby='partner-signup-email-error' value="jane">/,
      )
      t.match(
        wrong.html,
        "<strong id='partner-signup-email-error'>E-mail must be an e-mail address.</strong>",
      )
      t.match(wrong.html, "<strong id='partner-signup-plan-error'>Plan must be a plan that exists.</strong>")
      t.match(wrong.html, '<option value="DE" selected=\'selected\'>')
      t.match(wrong.html, '>Two\nlines</textarea>')
      t.notMatch(wrong.html, '<script>')
      t.same(statuses(), [422])
    })
    await t.test('a form without a nonce, and one of a program, are not sent', async (t) => {
      const expired = await visit('signup', form(jane, 'x'))
      t.match(expired.text, 'This form has expired. Please send it again.')
      t.match(expired.html, 'value="Jane O&#039;Brien"')
      t.match((await visit('signup', form({ ...jane, website: 'https://spam.example' }))).text, 'Thank you.')
      t.same(requests(), [])
    })
    await t.test('while the service is down, the form can be sent again', async (t) => {
      service.mode = 'down'
      const failed = await visit('signup', form(jane))
      t.match(failed.text, 'Your signup could not be sent. Please try again in a minute.')
      t.match(failed.html, 'value="jane@example.com"')
      service.mode = 'pass'
      t.equal(requests().length, 2)
      t.same(await signups(jane.email), [])
    })
    await t.test('a form that is sent three times, and whose first response is lost, is one signup', async (t) => {
      service.mode = 'lose'
      t.match((await visit('signup', form(jane))).text, 'Thank you. We have received your signup.')
      holdsOneKey(t)
      t.match((await visit('signup', form(jane))).text, 'Thank you. We have received your signup.')
      t.match(await signups(jane.email), [{
        ...jane,
        company: null,
        locale: 'de-DE',
        metadata: { page: /^\d+$/ },
      }])
    })
  })

  await t.test('uninstalling removes the key and the copies', async (t) => {
    const rows =
      "return $wpdb->get_col(\"SELECT option_name FROM $wpdb->options WHERE option_value LIKE '%spk_%' OR option_name LIKE '%partner_directory%'\");"
    t.ok((await wordpress.evaluate(`global $wpdb; ${rows}`) as string[]).length > 5)
    const uninstall =
      "require ABSPATH . 'wp-admin/includes/plugin.php'; uninstall_plugin('partner-directory.php');"
    t.same(await wordpress.evaluate(`global $wpdb; ${uninstall} ${rows}`), [])
  })
  requests()
  t.notMatch(wordpress.log(), /partner-directory\.php/, 'PHP reports nothing')
  seen.push(wordpress.log())
})

const hasPython = spawnSync('python3', ['--version']).error === undefined

await t.test('Python', { skip: hasPython ? false : 'python3 is not installed' }, async (t) => {
  const env = { PARTNER_API_URL: service.url, PARTNER_API_KEY: key }
  async function python(words: readonly string[], more: Readonly<Record<string, string>> = {}) {
    const child = spawn('python3', words, {
      cwd: join(examples, 'python'),
      env: cleanEnv({ ...env, ...more }),
    })
    child.stdin.end()
    const ended = await ending(child)
    seen.push(ended.stdout, ended.stderr)
    return ended
  }
  /** Runs code that has an \`api\`. @returns What it prints, as JSON. */
  async function evaluate(code: string, more?: Readonly<Record<string, string>>) {
    const head = `import json, os, partner_api
api = partner_api.PartnerApi(os.environ["PARTNER_API_URL"], os.environ["PARTNER_API_KEY"], "demo")
`
    const { stdout, stderr } = await python(['-c', head + code], more)
    if (stderr !== '') throw new Error(stderr)
    return stdout.trim().split('\n').map((line) => JSON.parse(line))
  }

  await t.test('prints the directory', async (t) => {
    const { stdout, stderr, code } = await python(['partner_api.py', 'demo', 'DE', 'FR'])
    t.same([code, stderr], [0, ''])
    t.match(stdout, 'Bäckerei Weißenfluß & Töchter, Germany\nCafé')
    t.match(requests(), [{
      line: 'GET /service/public/profiles?partner=demo&country=DE&country=FR',
      status: 200,
    }])
  })
  await t.test('follows relative links, and revalidates every page', async (t) => {
    const code = `for _ in range(2):
    print(json.dumps([row["slug"] for row in api.rows("/public/profiles", limit=2, country=["DE", "FR"])]))`
    const [first, second] = await evaluate(code)
    t.ok(first.length > 4)
    t.equal(new Set(first).size, first.length)
    t.same(second, first)
    const pages = Math.ceil(first.length / 2)
    t.same(statuses(), [...Array(pages).fill(200), ...Array(pages).fill(304)])
  })
  await t.test('waits as long as a limit asks', async (t) => {
    const limited = await cli('keys', 'issue', 'demo', '--name', 'Limited', '--limit', 'key=1/1')
    const code = `print(len(api.get("/public/plans")))
print(json.dumps(all(row["profile_count"] for row in api.get("/public/countries", in_use=True))))`
    t.same(await evaluate(code, { PARTNER_API_KEY: limited.key }), [4, true])
    t.same(statuses(), [200, 429, 200])
  })
  await t.test('submits one signup when the response is lost', async (t) => {
    service.mode = 'lose'
    const [receipt] = await evaluate(
      'print(json.dumps(api.sign_up({"email": "py@example.com", "name": "Py"})))',
    )
    t.match(receipt, { id: /^sgn_/, status: 'received' })
    holdsOneKey(t)
    t.equal((await signups('py@example.com')).length, 1)
  })
  await t.test('reports problems', async (t) => {
    const [code, errors] = await evaluate(`try:
    api.sign_up({"email": "py"})
except partner_api.Problem as problem:
    print(json.dumps(problem.code)); print(json.dumps(problem.errors))`)
    t.equal(code, 'invalid_body')
    t.match(errors, [{ pointer: '/email' }, { pointer: '/name' }])
    const ended = await python(['partner_api.py', 'other'])
    t.equal(ended.code, 1)
    t.match(ended.stderr, /^The key does not belong .* \(partner_mismatch, req_\w+\)\n$/)
    t.match(
      (await python(['partner_api.py', 'demo'], { PARTNER_API_KEY: `${key}\n\n${key}` })).stderr,
      'key must be one key',
    )
    requests()
  })
  await t.test('says when the service is down, or another server responds', async (t) => {
    service.mode = 'down'
    t.match((await python(['partner_api.py', 'demo'])).stderr, 'did not answer as expected')
    t.equal(requests().length, 3)
    service.mode = 'redirect'
    t.match((await python(['partner_api.py', 'demo'])).stderr, 'Another server answered, with status 302.')
    t.same(statuses(), [undefined], 'a redirect is not followed')
    service.mode = 'pass'
    requests()
  })
})

await t.test('Node', async (t) => {
  const clock = join(folder, 'seconds')
  const code = `import { readFileSync } from 'node:fs'
    const now = Date.now
    Date.now = () => { try { return now() + 1000 * readFileSync('${clock}', 'utf8') } catch { return now() } }`
  const { url, said } = await start(
    t,
    join(examples, 'node'),
    [process.execPath, '--import', `data:text/javascript,${encodeURIComponent(code)}`, 'dashboard.js'],
    { PARTNER_API_URL: service.url, PARTNER_API_KEY: key },
  )
  t.teardown(() => seen.push(said()))
  const waitSeconds = (seconds: number) => writeFileSync(clock, String(seconds))
  async function visit() {
    const html = await (await fetch(url)).text()
    seen.push(html)
    return textOf(html)
  }
  const [first, second] = await Promise.all([visit(), visit()])
  t.equal(second, first)
  t.same(statuses(), [200, 200, 200], 'visits at once share the requests')
  t.match(first, /Newest profiles .+, Hungary .*Last 30 days .+ Signups: \d+\. Requests: \d+\./)
  t.match(
    first,
    /GET \/service\/public\/profiles \d+ \d+ .*Activity .*UTC: signup\.created p\*\*\*@e\*\*\*\.com/,
  )
  waitSeconds(50)
  t.equal(await visit(), first)
  t.same(requests(), [])
  service.mode = 'down'
  waitSeconds(100)
  const notice = 'The service cannot be reached. This page tries again. These are older data.'
  t.equal((await visit()).replaceAll(` ${notice}`, ''), first)
  service.mode = 'pass'
  await cli('modules', 'deactivate', 'demo', 'reporting')
  waitSeconds(110)
  const refused = await visit()
  t.match(refused, /Newest profiles .+, Hungary/)
  t.match(refused, /Last 30 days .+ Ask the operator to activate reporting\. \(req_\w+\) Activity/)
  t.notMatch(refused, /older data|signup\.created/)
  requests()
})

await t.test('no page, URL or log holds a key', async (t) => {
  seen.push((await stopServing(served)).stderr)
  t.notMatch(seen.join('\n'), /spk_(live|test)_\w{12}/)
})

/** What a person reads. */
function textOf(html: string): string {
  return html.replace(/<(style|script|select).*?<\/\1>/gs, '').replace(/<[^>]+>|\s+/g, ' ').replace(
    / +/g,
    ' ',
  )
    .replaceAll('&#039;', "'").replaceAll('&amp;', '&')
}
