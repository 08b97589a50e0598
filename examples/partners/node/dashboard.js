/** A page for a partner's own staff: the newest profiles, and what the integration does. */
import { createServer } from 'node:http'
import { createPartnerClient, PartnerProblem } from 'partner-api-client'

const client = createPartnerClient({
  url: process.env.PARTNER_API_URL ?? 'https://api.example',
  key: process.env.PARTNER_API_KEY,
  partner: process.env.PARTNER_API_PARTNER ?? 'demo',
  // A person waits for the page.
  timeoutMs: 3000,
  retries: 1,
  maxRetryAfterSeconds: 1,
})

/**
 * Caches for a minute what `draw` makes of the data that `read` returns. While the service is down, or another server
 * responds, the function returns the last HTML with the error, and tries again after five seconds.
 */
function cached(read, draw) {
  let result = {}
  let expiresAt = 0
  let pending
  async function renew() {
    try {
      result = { html: draw(await read()) }
    } catch (error) {
      console.error(String(error))
      // A refusal ends the use of the data: the key may have lost the permission to read it.
      const isRefused = error instanceof PartnerProblem && [401, 403].includes(error.status)
      result = isRefused ? { error } : { ...result, error }
    }
    expiresAt = Date.now() + (result.error ? 5_000 : 60_000)
    pending = undefined
    return result
  }
  // Requests that arrive together wait for the same call.
  return () => Date.now() < expiresAt ? result : pending ??= renew()
}

const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }
const escape = (value) => String(value).replace(/[&<>"']/g, (character) => entities[character])

/** A template tag for HTML: escapes all values but arrays, whose items are HTML. */
function markup({ raw }, ...values) {
  return String.raw({ raw }, ...values.map((value) => Array.isArray(value) ? value.join('') : escape(value)))
}

/** What happened, and what a person can do about it. */
function explain(error) {
  if (!(error instanceof PartnerProblem)) return 'The service cannot be reached. This page tries again.'
  const { code, detail, request_id, required_module, required_scope } = error.problem
  const actions = {
    key_revoked: 'Ask the operator for another key.',
    key_expired: 'Ask the operator for another key.',
    module_inactive: `Ask the operator to activate ${required_module}.`,
    scope_missing: `Ask the operator to grant ${required_scope}.`,
  }
  return `${detail} ${actions[code] ?? ''} (${request_id})`
}

function section(title, { html, error }) {
  const age = html ? ' These are older data.' : ''
  const notice = error ? [markup`<p role="alert">${explain(error)}${age}</p>`] : []
  return markup`<section><h2>${title}</h2>${notice}${html ? [html] : []}</section>`
}

function drawProfiles(profiles) {
  return markup`<ul>${profiles.map(({ name, country }) => markup`<li>${name}, ${country.name}</li>`)}</ul>`
}

function drawSummary({ period, signups, requests }) {
  const rows = requests.by_endpoint.map(({ method, path, requests, errors }) =>
    markup`<tr><td>${method} ${path}</td><td>${requests}</td><td>${errors}</td></tr>`
  )
  return markup`<p>${period.from} to ${period.to}. Signups: ${signups.total}. Requests: ${requests.total}.</p>
    <table><tr><th>Endpoint</th><th>Requests</th><th>Errors</th></tr>${rows}</table>`
}

function drawActivity(events) {
  const rows = events.map(({ type, occurred_at, subject }) =>
    markup`<li>${occurred_at.slice(0, 16).replace('T', ' ')} UTC: ${type} ${subject.email ?? ''}</li>`
  )
  return markup`<ul>${rows}</ul>`
}

const readProfiles = cached(() => client.recentProfiles({ limit: 6 }), drawProfiles)
const readSummary = cached(() => client.reportSummary(), drawSummary)
// The first page: `for await` would read the whole list.
const readActivity = cached(async () => (await client.reportActivity({ limit: 10 })).data, drawActivity)

const server = createServer(async (request, response) => {
  if (request.url !== '/') return response.writeHead(404).end()
  const [profiles, summary, activity] = await Promise.all([readProfiles(), readSummary(), readActivity()])
  const sections = [
    section('Newest profiles', profiles),
    section('Last 30 days', summary),
    section('Activity', activity),
  ]
  response.writeHead(200, {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': "default-src 'none'; style-src 'unsafe-inline'",
    'cache-control': 'no-store',
  })
  response.end(markup`<!doctype html><html lang="en"><title>Partner dashboard</title>
    <style>body { font: 16px/1.5 system-ui; max-width: 60rem; margin: auto } th { text-align: left }</style>
    <main><h1>Partner dashboard</h1>${sections}</main></html>`)
})
// Reports are not public: put your own login in front of this server before other machines can reach it.
server.listen(process.env.PORT ?? 3000, '127.0.0.1', () => console.log('ready'))
