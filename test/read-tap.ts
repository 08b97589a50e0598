/**
 * What one test program's TAP output says. Points of a subtest are counted, not the line that closes it, unless
 * the closing line alone carries the news: a subtest without points, or one that failed although its points held.
 */
export type Tally = {
  passed: number
  failures: { path: string; detail: string }[]
  skips: { path: string; reason: string }[]
  /** Lines that are not TAP: what the program itself printed. */
  noise: string[]
}

type Open = { indent: number; name: string; points: number; failures: number }

const pointLine = /^( *)(not )?ok\b(?: \d+)?(?: - )?(.*)$/
const planLine = /^1\.\.(\d+)(?: # ?(.*))?$/
const tapLine = /^ *(?:#.*|1\.\.\d+.*|TAP version \d+|pragma .*|)$/

/** A program that dies before it plans its tests has no plan, and a file without tests plans none. */
export function readTap(output: string): Tally {
  const tally: Tally = { passed: 0, failures: [], skips: [], noise: [] }
  const open: Open[] = [{ indent: -1, name: '', points: 0, failures: 0 }]
  const lines = output.split(/\r?\n/)
  let plan: { count: number; reason: string } | undefined
  let points = 0

  const path = (name: string) => [...open.slice(1).map((one) => one.name), name].join(' › ')
  const fail = (name: string, detail: string) => {
    tally.failures.push({ path: path(name), detail })
    for (const one of open) one.failures++
  }

  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? ''
    const subtest = /^( *)# Subtest: (.*)$/.exec(line)
    const planned = planLine.exec(line)
    const point = pointLine.exec(line)

    if (subtest) {
      const indent = subtest[1]?.length ?? 0
      while ((open.at(-1)?.indent ?? -1) >= indent) open.pop()
      open.push({ indent, name: unescapeName(subtest[2] ?? ''), points: 0, failures: 0 })
    } else if (planned) {
      plan ??= { count: Number(planned[1]), reason: planned[2] ?? '' }
    } else if (point) {
      const indent = point[1]?.length ?? 0
      const { name, skip, todo } = readPoint(point[3] ?? '')
      while ((open.at(-1)?.indent ?? -1) > indent) open.pop()
      const closed = open.at(-1)?.indent === indent ? open.pop() : undefined
      const block = readBlock(lines, at + 1, indent + 2)
      at = block.end
      if (indent === 0) points++
      for (const one of open) one.points++

      if (todo !== undefined) {
        tally.skips.push({ path: path(name), reason: `to do: ${todo || 'no reason given'}` })
      } else if (skip !== undefined) tally.skips.push({ path: path(name), reason: skip || 'no reason given' })
      else if (point[2]) {
        if (!closed?.failures) fail(name, block.text)
      } else if (!closed?.points) tally.passed++
    } else if (/^ *Bail out!/.test(line)) {
      if (!tally.failures.some((one) => one.path === 'bail out')) {
        open.length = 1
        fail('bail out', line.trim())
      }
    } else if (!tapLine.test(line)) tally.noise.push(line)
  }

  open.length = 1
  if (plan?.count === 0 && points === 0 && plan.reason && plan.reason !== 'no tests found') {
    tally.skips.push({ path: 'the whole file', reason: plan.reason })
  } else if (points === 0 && tally.failures.length === 0) {
    fail(
      'no test',
      tally.passed ? 'The program ended inside its first test.' : 'The program ended without a single test.',
    )
  } else if (plan && plan.count !== points && tally.failures.length === 0) {
    fail('plan', `${plan.count} planned, ${points} seen: the output was cut or mixed.`)
  } else if (!plan && tally.failures.length === 0) fail('plan', 'The program ended before its plan.')
  return tally
}

function readPoint(text: string): { name: string; skip?: string; todo?: string } {
  const directive = /(?:^|\s)(?<!\\)# (SKIP|TODO)\b ?(.*)$/i.exec(text)
  const name = unescapeName(text.slice(0, directive?.index).replace(/ # time=\S+$/, ''))
  const reason = directive?.[2]?.trim() ?? ''
  if (directive?.[1]?.toUpperCase() === 'SKIP') return { name, skip: reason }
  return directive ? { name, todo: reason } : { name }
}

function readBlock(lines: string[], start: number, indent: number): { text: string; end: number } {
  const margin = ' '.repeat(indent)
  if (lines[start] !== `${margin}---`) return { text: '', end: start - 1 }
  const close = lines.indexOf(`${margin}...`, start)
  const end = close === -1 ? lines.length : close
  const text = lines.slice(start + 1, end).map((line) => line.slice(indent)).join('\n')
  return { text, end }
}

function unescapeName(name: string): string {
  return name.trim().replace(/\\([#\\])/g, '$1')
}
