// Puts the service into a server that hands out Node's own requests: Express, Fastify, Connect, node:http.
import { Problem } from 'partner-api'

export function mountOnNode(api) {
  return async (request, response) => {
    const answer = await api.handle({
      method: request.method,
      target: request.originalUrl ?? request.url,
      header: (name) => request.headers[name],
      body: (maxBytes) => read(request, maxBytes),
      address: request.socket.remoteAddress,
    })
    response.writeHead(answer.status, answer.headers).end(answer.body)
  }
}

async function read(request, maxBytes) {
  const chunks = []
  let length = 0
  try {
    // The connection is kept for the answer, whatever comes.
    for await (const chunk of request.iterator({ destroyOnReturn: false })) {
      length += chunk.length
      if (length > maxBytes) throw new Problem('body_too_large')
      chunks.push(chunk)
    }
  } catch (error) {
    throw error instanceof Problem ? error : new Problem('malformed_request')
  }
  return Buffer.concat(chunks)
}
