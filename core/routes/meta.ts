import { literal, object, strictObject } from 'valibot'
import { after } from '../after.ts'
import type { Route } from './route.ts'

export const health: Route = {
  name: 'health',
  access: 'open',
  method: 'GET',
  path: '/health',
  summary: 'Whether the service and its store answer',
  reply: object({ data: strictObject({ status: literal('ok') }) }),
  handle: (ports) => after(ports.checkStore(), () => ({ data: { status: 'ok' } })),
}
