/** Two ways to read pages of the directory, each with the time that one page took. */
import type { PartnerApi } from '../../../core/api.ts'
import { fold, foldWords } from '../../../core/lib/text.ts'
import type { ProfileQuery } from '../../../core/ports/directory.ts'
import type { Store } from '../../../core/ports/store.ts'
import { PARTNER } from '../data/profiles.ts'
import { createRandom } from '../data/random.ts'
import { DIRECTORY_PATH, exchangeFor } from '../data/tenant.ts'
import type { Question, QuestionKind } from './questions.ts'

const pageSize = 20
/** How far a reader pages before it asks something else. */
const pagesInARow = 10
const samples = 2000
const longestMs = 1500

/** Reads the next page. @returns Milliseconds, and whether there is another page. */
type Reader = () => Promise<{ milliseconds: number; more: boolean }>

/** Times many pages of one kind of question; the first ones are not counted. */
export async function timePages(kind: QuestionKind, open: (question: Question) => Reader): Promise<number[]> {
  const random = createRandom(11)
  const times: number[] = []
  const startedAt = performance.now()
  while (times.length < samples && performance.now() - startedAt < longestMs) {
    const readPage = open(kind.ask(random))
    for (let page = 0; page < pagesInARow; page++) {
      const { milliseconds, more } = await readPage()
      times.push(milliseconds)
      if (!more) break
    }
  }
  return times.slice(Math.min(50, times.length >> 1))
}

/** Through the whole pipeline, which keeps no replies here. */
export function pipelineReader(service: PartnerApi, key: string): (question: Question) => Reader {
  return ({ word, countries = [], industries = [], sort }) => {
    const query = new URLSearchParams({ partner: PARTNER, limit: String(pageSize) })
    if (word !== undefined) query.set('q', word)
    if (sort !== undefined) query.set('sort', sort)
    for (const country of countries) query.append('country', country)
    for (const industry of industries) query.append('industry', industry)
    return async () => {
      const exchange = exchangeFor(`${DIRECTORY_PATH}?${query}`, key)
      const startedAt = performance.now()
      const answer = service.handle(exchange)
      const { status, body } = answer instanceof Promise ? await answer : answer
      const milliseconds = performance.now() - startedAt
      if (status !== 200) throw new Error(`${exchange.target} was answered with ${status}.`)
      const { page } = JSON.parse(Buffer.from(body ?? '').toString())
      query.set('cursor', String(page.next_cursor))
      return { milliseconds, more: page.has_more }
    }
  }
}

/** The store alone. */
export function storeReader(store: Pick<Store, 'listProfiles'>): (question: Question) => Reader {
  return ({ word, countries = [], industries = [], sort = 'name', from }) => {
    const words = word === undefined ? [] : foldWords(word)
    let after = from
    return async () => {
      const query: ProfileQuery = { words, countries, industries, sort, after, limit: pageSize + 1 }
      const startedAt = performance.now()
      const found = store.listProfiles(PARTNER, query, Date.now())
      const profiles = found instanceof Promise ? await found : found
      const milliseconds = performance.now() - startedAt
      const last = profiles[pageSize - 1]
      after = last && { key: sort === 'name' ? fold(last.name) : last.publishedAt, slug: last.slug }
      return { milliseconds, more: profiles.length > pageSize }
    }
  }
}
