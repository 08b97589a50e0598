import * as v from 'valibot'
import type { Plan } from '../model.ts'
import { isCurrencyCode } from './currency.ts'
import { fields, list, mustBe, slug, text, whole } from './fields.ts'

/** The line of a plan. */
export function planLine(): v.GenericSchema<unknown, Plan> {
  return v.pipe(
    fields({
      slug: slug(),
      name: text(200),
      description: text(5_000),
      price: fields({
        amount_minor: whole(0),
        currency: v.pipe(
          v.string(mustBe('text')),
          v.check(isCurrencyCode, mustBe('the ISO 4217 code of a current currency, in upper case')),
        ),
      }),
      interval: v.picklist(['month', 'year', 'once'], mustBe('month, year or once')),
      features: list(text(200), 50),
      highlighted: v.nullish(v.boolean(mustBe('true or false'))),
      position: v.nullish(whole()),
    }),
    v.transform((line) => ({
      slug: line.slug,
      name: line.name,
      description: line.description,
      price: { amountMinor: line.price.amount_minor, currency: line.price.currency },
      interval: line.interval,
      features: line.features,
      highlighted: line.highlighted ?? false,
      position: line.position ?? undefined,
    })),
  )
}

/** The fields of a plan in the order of an export. */
export function planFields(plan: Plan): unknown {
  return {
    slug: plan.slug,
    name: plan.name,
    description: plan.description,
    price: { amount_minor: plan.price.amountMinor, currency: plan.price.currency },
    interval: plan.interval,
    features: plan.features,
    highlighted: plan.highlighted,
    position: plan.position ?? null,
  }
}
