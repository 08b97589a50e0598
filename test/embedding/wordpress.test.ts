/** Runs the WordPress plugin on a service that also fails, and checks what people see. */
import { execFileSync } from 'node:child_process'
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { launchBrowser, noBrowser, openPage } from '../browser/browser.ts'
import { openPartnerProject, sentWithOneKey, textOf } from './partner-project.ts'
import { HOSTILE } from './recorder.ts'
import { ADMINISTRATOR, hasWordPress, startWordPress } from './wordpress.ts'

await t.test('WordPress', { skip: hasWordPress() ?? false }, async (t) => {
  const partner = await openPartnerProject(t)
  const { folder, key, service, serviceUrl, requests, statuses, cli, signups, see, end } = partner
  const [, assemble = ''] =
    /```sh\n(.*?)```/s.exec(readFileSync(join(folder, 'wordpress/README.md'), 'utf8')) ?? []
  execFileSync('sh', ['-ec', assemble], { cwd: folder })
  const plugin = join(folder, 'partner-directory')
  const clock = join(folder, 'minutes')
  const drips = join(folder, 'drips')
  const wordpress = await startWordPress(
    plugin,
    {
      directory: '[partner_directory country="DE,fr" limit="2"]',
      outage: '[partner_directory limit="3"]',
      refusal: '[partner_directory limit="4"]',
      hostile: '[partner_directory limit="5"]',
      mistake: '[partner_directory limit="many"]',
      signup: '[partner_signup]',
      widget: '<!-- wp:partner-directory/widget {"align":"wide"} /-->',
    },
    // The plugin's own clock, a language of which it must make a tag, and no other time-out on a busy machine.
    `namespace Partner_Directory;
    function time() { return \\time() + 60 * (int) @file_get_contents('${clock}'); }
    add_filter('locale', function () { return 'de_DE_formal'; });
    add_filter('http_request_args', function ($arguments) { return array('timeout' => is_file('${drips}') ? 0.3 : 60) + $arguments; });`,
  )
  t.teardown(() => wordpress.end())
  const waitMinutes = (minutes: number) => writeFileSync(clock, String(minutes))
  const fail = (mode: typeof service.mode) => {
    service.mode = mode
    if (mode === 'drip') writeFileSync(drips, '')
    else rmSync(drips, { force: true })
  }

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
    see(page, String(response.headers.get('location')))
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
    const texts: Partial<Record<typeof service.mode, string>> = {
      redirect: 'status 302',
      page: 'status 502',
      down: 'Check the address',
    }
    for (const mode of ['down', ...HOSTILE] as const) {
      fail(mode)
      t.match(await save({ key }), new RegExp(`Not saved\\..*${texts[mode] ?? ''}`), mode)
      t.equal(requests().length, 1, 'the key is sent once, and not to where a redirect points')
    }
    fail('pass')
    t.match(await save({ key, url: 'http://api.example' }), 'Not saved. The address must start with https://')
    t.match(await save({ key, partner: key }), 'Not saved. The partner is a name')
    t.match(await save({}), 'Not saved. Enter the key.')
    t.same(requests(), [])
    t.equal((await saved()).key, '')
  })

  await t.test('a valid key is saved, and never shown', async (t) => {
    const few = await cli('keys', 'issue', 'demo', '--name', 'Few', '--scope', 'read:profiles')
    const warning = 'Saved. Ask the operator for these modules: countries, pricing, signup, widget.'
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
    t.match(await save({ url: serviceUrl }), 'Not saved. Enter the key.', 'but not for another address')
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
    const before = await visit('outage')
    const shared = await visit('refusal')
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

  await t.test('the block', async (t) => {
    const shown = await visit('widget')
    t.match(shown.html, /<div class="alignwide wp-block-partner-directory-widget"><partner-widget>/)
    t.match(shown.text, /Meet the makers .+ Companies we work with .+ The newest companies .+ Plans/)
    t.equal((await visit('widget')).html, shown.html)
    t.match(requests(), [{ line: 'GET /service/partner-widget?partner=demo', status: 200 }])
    const [, id = ''] = /<input type="hidden" name="page_id" value="(\d+)">/.exec(shown.html) ?? []
    const search = (query: string) => load(`/?page_id=${id}&${query}`)
    t.match((await search('partner_q=O%27Brien%21&partner_country=DE')).text, 'No company matches.')
    t.match((await search('partner_q=%21')).text, 'Please search again')
    const found = await search('partner_industry=food-and-drink')
    t.match(found.text, /Companies that match .+ Plans/)
    t.match(requests(), [
      { line: 'GET /service/public/profiles?partner=demo&q=O%27Brien%21&country=DE&limit=12' },
      { status: 400 },
      { status: 200 },
    ])
    for (const mode of ['down', 'rows'] as const) {
      service.mode = mode
      t.match(
        (await search('partner_q=bread')).text,
        /Meet the makers .+ is not available at the moment/,
        mode,
      )
    }
    service.mode = 'pass'
    requests()

    await t.test('in a browser', { skip: noBrowser }, async (t) => {
      const browser = await launchBrowser()
      t.teardown(() => browser.close())
      const screen = { scheme: 'light', width: 1440, height: 900 } as const
      const { page } = await openPage(browser, `${wordpress.url}/?page_id=${id}`, screen)
      await page.evaluate('globalThis.stays = true')
      await page.getByLabel('Search').fill('bread')
      await t.resolves(page.getByRole('status').getByText('Companies that match').waitFor())
      t.equal(new URL(page.url()).search, `?page_id=${id}&partner_q=bread`)
      t.ok(await page.evaluate('stays'), 'the page was loaded once')

      await page.goto(`${wordpress.url}/wp-login.php`)
      await page.locator('#user_login').fill(ADMINISTRATOR.log)
      await page.locator('#user_pass').fill(ADMINISTRATOR.pwd)
      await page.locator('#wp-submit').click()
      await page.waitForURL(/wp-admin/)
      await page.goto(`${wordpress.url}/wp-admin/post.php?post=${id}&action=edit`)
      await t.resolves(page.locator('.wp-block partner-widget .partner-results h3').first().waitFor())
    })
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
      sentWithOneKey(t, requests())
      t.match((await visit('signup', form(jane))).text, 'Thank you. We have received your signup.')
      t.match(await signups(jane.email), [{
        ...jane,
        company: null,
        locale: 'de-DE',
        metadata: { page: /^\d+$/ },
      }])
    })
  })

  await t.test('hostile answers are failures, and replace no copy of the last day', async (t) => {
    const [shown, { html }] = [await visit('outage'), await visit('signup')]
    const jane = { email: 'jane@example.com', name: 'Jane', nonce: nonceIn(html) }
    const form = Object.fromEntries(
      Object.entries(jane).map(([name, value]) => [`partner_signup[${name}]`, value]),
    )
    for (const [index, mode] of HOSTILE.entries()) {
      fail(mode)
      waitMinutes(20 + 6 * index)
      t.equal((await visit('outage')).html, shown.html, mode)
      t.match((await visit('hostile')).text, 'not available', mode)
      t.match((await visit('signup', form)).text, /could not be sent|correct the marked/, mode)
    }
    fail('pass')
    waitMinutes(121)
    t.match((await visit('hostile')).html, '<li>', 'no failure is kept for longer than half a minute')
    await visit('outage')
    service.mode = 'down'
    waitMinutes(121 + 23 * 60)
    t.equal((await visit('outage')).html, shown.html)
    waitMinutes(121 + 24 * 60)
    t.match((await visit('outage')).text, 'not available')
    fail('pass')
    t.notOk(requests().some(({ line }) => line.includes('redirected')))
  })

  await t.test('uninstalling removes the key and the copies', async (t) => {
    const rows =
      "return $wpdb->get_col(\"SELECT option_name FROM $wpdb->options WHERE option_value LIKE '%spk_%' OR option_name LIKE '%partner_directory%'\");"
    t.ok((await wordpress.evaluate(`global $wpdb; ${rows}`) as string[]).length > 5)
    const uninstall =
      "require ABSPATH . 'wp-admin/includes/plugin.php'; uninstall_plugin('partner-directory/partner-directory.php');"
    t.same(await wordpress.evaluate(`global $wpdb; ${uninstall} ${rows}`), [])
  })
  await t.test('so does uninstalling in a network with an object cache, from a site without the plugin', async (t) => {
    const { host } = new URL(wordpress.url)
    await wordpress.evaluate(`
      require ABSPATH . 'wp-admin/includes/upgrade.php';
      foreach ($GLOBALS['wpdb']->tables('ms_global') as $name => $table) $GLOBALS['wpdb']->$name = $table;
      install_network();
      populate_network(1, '${host}', 'admin@example.com', 'Network', '/', false);
      file_put_contents(WP_CONTENT_DIR . '/object-cache.php', "<?php require ABSPATH . 'wp-includes/cache.php';");
      file_put_contents(WPMU_PLUGIN_DIR . '/cache.php', '<?php
        $cache = is_file(ABSPATH . "cache") ? unserialize(file_get_contents(ABSPATH . "cache")) : array();
        $GLOBALS["wp_object_cache"]->cache = $cache;
        register_shutdown_function(function () {
          file_put_contents(ABSPATH . "cache", serialize($GLOBALS["wp_object_cache"]->cache));
        });');`)
    const network = `define('MULTISITE', true); define('SUBDOMAIN_INSTALL', false);
      define('DOMAIN_CURRENT_SITE', '${host}'); define('PATH_CURRENT_SITE', '/');
      define('SITE_ID_CURRENT_SITE', 1); define('BLOG_ID_CURRENT_SITE', 1);`
    const count = `global $wpdb;
      $rows = "FROM wp_2_options WHERE option_value LIKE '%spk_%'";
      $cached = substr_count(file_get_contents(ABSPATH . 'cache'), 'spk_');
      return [(int) $wpdb->get_var("SELECT count(*) $rows"), $cached > 0];`
    const settings = `['url' => '${service.url}', 'partner' => 'demo', 'key' => '${key}']`
    const plugin = "require_once ABSPATH . 'wp-admin/includes/plugin.php';"
    await wordpress.evaluate(
      `${plugin} deactivate_plugins('partner-directory/partner-directory.php');
      switch_to_blog(wpmu_create_blog('${host}', '/two/', 'Two', 1));
      wp_installing(false);
      activate_plugin('partner-directory/partner-directory.php');
      update_option('partner_directory', ${settings}, false);
      \\Partner_Directory\\read('/public/plans', array('*' => array('slug' => 'string')));`,
      network,
    )
    t.same(await wordpress.evaluate(count, network), [1, true])
    await wordpress.evaluate(
      `${plugin} uninstall_plugin('partner-directory/partner-directory.php');`,
      network,
    )
    t.same(await wordpress.evaluate(count, network), [0, false])
  })
  await t.test('no warning of PHP, and no key in a page, URL or log', async (t) => {
    t.notMatch(wordpress.log(), /partner-(directory|widget)\.php/)
    see(wordpress.log())
    await end(t)
  })
})
