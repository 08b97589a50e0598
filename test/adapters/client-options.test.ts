/** What a client is made with. */
import { inspect } from 'node:util'
import t from 'tap'
import { good, key, makeClient, scripted } from './scripted-server.ts'

t.test('it is made for servers only', (t) => {
  const navigator = Object.getOwnPropertyDescriptor(globalThis, 'navigator')!
  t.teardown(() => Object.defineProperty(globalThis, 'navigator', navigator))
  Object.defineProperty(globalThis, 'navigator', {
    configurable: true,
    value: { userAgent: 'Mozilla/5.0 (X11; Linux x86_64)' },
  })
  t.throws(() => makeClient(), /secret/)
  Object.defineProperty(globalThis, 'navigator', { configurable: true, value: undefined })
  t.doesNotThrow(() => makeClient(), 'a runtime without a navigator is no browser')
  t.end()
})

t.test('what can never work is refused when the client is made', (t) => {
  for (const url of ['nowhere', 'localhost:8787', 'file:///etc', '']) {
    t.throws(() => makeClient({ url }), { name: 'TypeError', message: /^url must be / }, url)
  }
  try {
    makeClient({ url: key })
    t.fail('a URL that is none')
  } catch (error) {
    t.notOk(inspect(error).includes(key), 'a key in its place is not said')
  }
  const notSet = undefined as unknown as string
  const wrong = {
    key: [notSet, '', ' ', `${key}\n${key}`, `${key}…`],
    // The two may have changed places.
    partner: [notSet, '', key],
  }
  for (const [name, values] of Object.entries(wrong)) {
    for (const value of values) {
      try {
        makeClient({ [name]: value })
        t.fail(`${name}: ${value}`)
      } catch (error) {
        t.match(error, { name: 'TypeError', message: new RegExp(`^${name} must be `) })
        t.notOk(String((error as Error).stack).includes(key.slice(-20)), 'nor is it said what it was')
      }
    }
  }
  for (
    const [name, values] of Object.entries({
      timeoutMs: [0, -1, NaN, 2 ** 31],
      retries: [-1, NaN, 1.5, Infinity],
      maxRetryAfterSeconds: [-1, NaN, 2_147_484],
    })
  ) {
    for (const value of values) {
      t.throws(() => makeClient({ [name]: value }), { name: 'RangeError', message: name })
    }
  }
  t.end()
})

t.test('a key is taken as files have it', async (t) => {
  const lines = [`${key}\n`, `\ufeff${key}\r\n`, ` ${key}\f`]
  for (const read of [...lines, Buffer.from(`${key}\n`) as unknown as string]) {
    const { asked, client } = scripted([good], { key: read })
    t.strictSame(await client.plans(), [])
    t.equal(asked[0]!.headers.get('x-service-partner-key'), key)
  }
})

t.test('a path of the deployment is kept, and its name counts', async (t) => {
  const urls: string[] = []
  for (const url of ['https://api.example/below/it/', 'https://api.example/below/it?x=1#y']) {
    const { asked, client } = scripted([good], { url, serviceName: 'acme' })
    await client.plans()
    urls.push(asked[0]!.url)
    t.equal(asked[0]!.headers.get('x-acme-partner-key'), key)
  }
  t.strictSame(urls, Array(2).fill('https://api.example/below/it/acme/public/plans?partner=demo'))
})
