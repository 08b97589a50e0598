/** The log of `serve` when its reader is slow. */
import { once } from 'node:events'
import fc from 'fast-check'
import { test } from 'tap'
import { createLog } from '../../cli/serve/log.ts'
import type { LogEvent } from '../../core/log.ts'
import { startServing, stopServing } from '../support/cli-program.ts'

const event = (id: string): LogEvent => ({
  time: '2026-11-20T00:00:00.000Z',
  level: 'info',
  event: 'request',
  request_id: id,
  method: 'GET',
  path: '/ä',
})

test('every log line is written completely or counted as dropped', (t) => {
  fc.assert(fc.property(
    // Bytes that the reader accepts before each flush, and lines that are logged before it.
    fc.array(fc.record({ room: fc.nat(400), lines: fc.nat(4) }), { maxLength: 20 }),
    (turns) => {
      let room = 0
      let taken = Buffer.alloc(0)
      const log = createLog('all', (bytes, start) => {
        if (room === 0) throw Object.assign(new Error('full'), { code: 'EAGAIN' })
        const piece = bytes.subarray(start, start + Math.min(room, 90))
        taken = Buffer.concat([taken, piece])
        room -= piece.length
        return piece.length
      })
      let sent = 0
      for (const turn of turns) {
        room = turn.room
        for (let line = 0; line < turn.lines; line++) log.write(event(`req_${sent++}`))
        log.flush()
      }
      room = Infinity
      log.flush()
      const read = taken.toString('utf8').split('\n').slice(0, -1).map((line) => JSON.parse(line))
      const notices = read.filter((line) => line.event === 'log_dropped')
      const written = read.filter((line) => line.event === 'request').map((line) => line.request_id)
      const lost = notices.reduce((sum, { count }) => sum + count, 0)
      return notices.every(({ count, level, time }) =>
        count > 0 && level === 'warn' && Date.parse(time) > 0
      ) &&
        lost + written.length === sent && new Set(written).size === written.length
    },
  ))
  t.end()
})

test('the log reports the number of dropped lines', async (t) => {
  const served = await startServing(['serve', '--port', '0', '--log', 'all'], 'memory:')
  t.teardown(() => served.child.kill())
  const { stderr } = served.child
  let text = ''
  stderr.on('data', (chunk: string) => text += chunk)
  stderr.pause()
  const asked = 800
  for (let count = 0; count < asked; count += 50) {
    await Promise.all(Array.from({ length: 50 }, async () => {
      const answer = await fetch(`${served.url}/service/public/profiles/${'x'.repeat(2_000)}?partner=demo`, {
        headers: { 'X-Service-Partner-Key': 'wrong' },
      })
      await answer.arrayBuffer()
    }))
  }
  stderr.resume()
  while (!text.includes('log_dropped')) await once(stderr, 'data')
  await stopServing(served)
  const events = text.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line))
  const dropped = events.filter((line) => line.event === 'log_dropped')
  t.ok(dropped.length > 0)
  const lost = dropped.reduce((sum, { count }) => sum + count, 0)
  t.equal(lost + events.filter((line) => line.event === 'request').length, asked)
})
