/** The reference as a tree of sections: the page and the Markdown are two renderings of it. */
import type { Problem } from '../wire.ts'
import type { Language } from './samples.ts'

/** A text with code in backticks and links as in Markdown, to places of the reference (`#id`) or to `https:`. */
export type Prose = string

/** A piece of a line: text, code, or a link. */
export type Inline = string | { readonly code: string } | { readonly href: string; readonly text: string }

/** The whole reference. */
export interface ReferenceContent {
  readonly title: string
  readonly summary: string
  readonly lead: string
  /** Sections to begin with. */
  readonly cards: readonly { readonly id: string; readonly title: string; readonly text: string }[]
  readonly facts: readonly Fact[]
  readonly parts: readonly ReferencePart[]
  /** The address in its samples that stands for the address of the service, unless that is known. */
  readonly exampleAddress: string | undefined
}

/** A fact about the service. */
export interface Fact {
  readonly name: string
  readonly value: readonly Inline[]
}

/** An entry of the contents with the sections below it. */
export interface ReferencePart {
  readonly name: string
  readonly sections: readonly Section[]
  /** Sections that belong together, after the others. */
  readonly group?: {
    readonly label: string
    /** Whether the label is a heading of its own. */
    readonly isHeading: boolean
    readonly isQuiet: boolean
    readonly sections: readonly Section[]
  }
}

export interface Section {
  readonly id: string
  readonly level: 2 | 3
  readonly title: string
  /** Other words that people search for. */
  readonly words?: string
  readonly blocks: readonly Block[]
}

export type Block = OperationLine | Paragraphs | CodeBlock | Responses | FieldList | Table

/** Method and path. */
export interface OperationLine {
  readonly kind: 'operation'
  readonly method: string
  readonly path: string
}

export interface Paragraphs {
  readonly kind: 'prose'
  /** The paragraphs; a line that begins with `- ` or `1. ` is an item of a list. */
  readonly lines: readonly Prose[]
}

export interface CodeBlock {
  readonly kind: 'code'
  readonly caption: string | OperationLine
  readonly note?: string
  /** Describes the code to screen readers. */
  readonly label: string
  /** Text, or a text in each of several languages. */
  readonly code: string | ReadonlyMap<Language, string>
  /** Whether there is something to copy. */
  readonly isCopied: boolean
}

/** What an endpoint responds with. */
export interface Responses {
  readonly kind: 'responses'
  /** The id of the operation. */
  readonly id: string
  /** The title of the operation. */
  readonly title: string
  readonly mediaType: string
  readonly success: { readonly status: string; readonly body: string }
  /** The problems by their status; of several bodies, the first is shown. */
  readonly problems: readonly { readonly status: string; readonly bodies: readonly Problem[] }[]
}

export interface FieldList {
  readonly kind: 'fields'
  readonly title?: string
  /** What each row is, for a search. */
  readonly of: 'parameter' | 'member' | 'field' | 'event'
  readonly rows: readonly FieldRow[]
}

/** A field, or the fields of an alternative of its object. */
export type FieldRow = DescribedField | DescribedAlternative

export interface DescribedField {
  readonly id?: string
  readonly name: string
  /** The type and, of a parameter, the place; empty for an event. */
  readonly about: string
  readonly need?: 'required' | 'optional' | undefined
  readonly text: Prose
  readonly limits: readonly (readonly Inline[])[]
  /** The members of an object, or of the rows of an array. */
  readonly members: readonly FieldRow[]
}

export interface DescribedAlternative {
  /** The member by whose value the alternative is known. */
  readonly member: string
  readonly values: readonly string[]
  readonly members: readonly FieldRow[]
}

export interface Table {
  readonly kind: 'table'
  readonly heads: readonly [string, string]
  readonly rows: readonly {
    readonly id?: string
    readonly name: string
    readonly note: string
    readonly text: string
    /** What to do about it. */
    readonly advice?: Prose
  }[]
}

/** All sections of a reference, in their order. */
export function sectionsOf({ parts }: ReferenceContent): readonly Section[] {
  return parts.flatMap(({ sections, group }) => [sections, group?.sections ?? []].flat())
}
