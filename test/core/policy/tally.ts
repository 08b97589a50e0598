/** Counts what was compared with the oracle. */
export interface Tally {
  decisions: number
  mismatches: number
  /** The first few mismatches, in words. */
  readonly examples: string[]
  /** Counts one comparison; what differed is only put into words when something did. */
  compare(agrees: boolean, difference: () => string): void
}

/** Thrown by a tally that is not interested in a second mismatch. */
export class Caught extends Error {}

/** @param stopAtFirst Whether the first mismatch ends the proof, by throwing `Caught`. */
export function createTally(stopAtFirst = false): Tally {
  return {
    decisions: 0,
    mismatches: 0,
    examples: [],
    compare(agrees, difference) {
      this.decisions++
      if (agrees) return
      this.mismatches++
      if (this.examples.length < 10) this.examples.push(difference())
      if (stopAtFirst) throw new Caught(this.examples[0])
    },
  }
}
