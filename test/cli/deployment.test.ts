/** What `verify` receives of a deployment: the one place where it is redacted and cut. */
import { test } from 'tap'
import { toDeploymentResponse } from '../../cli/verify/deployment.ts'
import { mintKey } from '../../core/keys/format.ts'

const key = mintKey('spk', 'live').text
const long = 'a@'.repeat(400_000)

function receive(text: string, headers: Readonly<Record<string, string | readonly string[]>> = {}) {
  return toDeploymentResponse({ url: 'https://api.example/', status: 200, headers, text, ms: 1 })
}

test('keys and credentials are redacted in header fields, JSON and the title of a page', (t) => {
  const { header, json } = receive(
    JSON.stringify({ [key]: [{ name: `No ${key}`, url: 'https://user:word@h.example/' }], count: 1 }),
    { location: `/${key}`, vary: [key, 'Origin'], etag: '"abc"' },
  )
  t.strictSame(['location', 'Vary', 'ETag', 'age'].map(header), ['[key]', '[key] Origin', '"abc"', undefined])
  t.strictSame(json, { '[key]': [{ name: 'No [key]', url: 'https://[credentials]@h.example/' }], count: 1 })
  t.equal(receive(`<html><title>At ${key}`).page, 'the HTML page "At [key]"')
  t.end()
})

test('texts are cut, and what is nested deeper than a call stack', (t) => {
  const { header, json, page } = receive(JSON.stringify({ [long]: long }), {
    'content-type': 'text/html',
    link: long,
  })
  const [[name = '', value] = []] = Object.entries(json as object)
  t.same([name.length, value.length, header('link')?.length], [1_001, 1_001, 4_001])
  t.equal(page, 'an HTML page')
  t.equal(receive(`<!doctype html><title>${long}</title>`).page?.length, 'the HTML page ""'.length + 201)
  const nested = receive(`${'['.repeat(1e6)}${']'.repeat(1e6)}`)
  t.match(JSON.stringify(nested.json), /^\[{100}"…"\]{100}$/)
  t.end()
})

test('a body is empty, JSON, a page or something else', (t) => {
  const kinds = ['', '{}', '<p>', '<html>'].map((text) => receive(text))
  t.same(kinds.map(({ isEmpty, json, page }) => [isEmpty, json !== undefined, page !== undefined]), [
    [true, false, false],
    [false, true, false],
    [false, false, false],
    [false, false, true],
  ])
  t.equal(receive('', { 'content-type': 'text/html' }).page, 'an HTML page')
  t.equal(
    receive('<HTML><TITLE lang="en">\n \u001b[31mNot\n found').page,
    'the HTML page "\\u{1b}[31mNot found"',
  )
  t.end()
})
