import process from 'node:process'

/**
 * Node's `node:http`. An import would read each of its members, WebSocket among them, and with that load all that fetch
 * is made of: 25 of the 120 ms in which a server starts.
 */
export function loadHttp(): typeof import('node:http') {
  return process.getBuiltinModule('node:http')
}
