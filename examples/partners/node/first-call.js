import { createPartnerClient } from 'partner-api-client'

const { PARTNER_API_URL: url, PARTNER_API_KEY: key } = process.env
const client = createPartnerClient({ url, key, partner: 'demo' })
for await (const { name } of client.profiles({ country: 'DE' })) console.log(name)
