import { createPartnerClient, PartnerProblem } from 'partner-api-client'

const client = createPartnerClient({
  url: process.env.PARTNER_API_URL ?? 'https://api.example',
  key: process.env.PARTNER_API_KEY,
  partner: 'demo',
})

for await (const { name, country } of client.profiles({ country: ['DE', 'FR'] })) {
  console.log(`${name}, ${country.name}`)
}
try {
  const { id } = await client.signUp({ email: 'jane@example.com', name: 'Jane Doe', plan: 'starter' })
  console.log(`received: ${id}`)
} catch (error) {
  if (!(error instanceof PartnerProblem)) throw error
  console.log(`refused: ${error.code}`)
}
