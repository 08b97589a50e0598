/**
 * `serve-and-ask.js ENTRY` prints what every entry of both packages exports, and what the client receives from a service on SQLite behind
 * the runtime's own server.
 */
import { readFileSync } from 'node:fs'
import process from 'node:process'
import {
  createKeyAdministration,
  createPartnerAdministration,
  createPartnerApi,
  MODULE_NAMES,
} from 'partner-api'
import { createPartnerClient } from 'partner-api-client'
import { openSqliteStore } from 'partner-api/sqlite'

const { exports } = JSON.parse(readFileSync('node_modules/partner-api/package.json', 'utf8'))
const exported = { 'partner-api-client': Object.keys(await import('partner-api-client')).sort() }
for (const name of Object.keys(exports)) {
  exported[name] = Object.keys(await import(`partner-api${name.slice(1)}`)).sort()
}

const entry = process.argv[2]
const { serve } = await import(`partner-api/${entry}`)
const store = await openSqliteStore(`${entry}-${process.version}.db`)
const operator = { actor: 'consumer' }
await createPartnerAdministration(store, operator).create({
  slug: 'acme',
  name: 'Acme',
  modules: MODULE_NAMES,
})
const { text: key } = await createKeyAdministration(store, operator)
  .issue({ partner: 'acme', name: 'Website', environment: 'live' })

const server = await serve(createPartnerApi({ store }), { port: 0 })
const client = createPartnerClient({ url: server.url, key, partner: 'acme' })
const { valid } = await client.verifyKey()
const countries = await client.countries()
const document = await fetch(`${server.url}/service/openapi.json`)
const { openapi } = await document.json()
await server.close()
await store.close()
console.log(JSON.stringify({ exported, valid, countries: countries.length, openapi }))
