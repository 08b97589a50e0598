/** For how long stores tell batches of counts apart: what keeps them from being added twice. */

/** Milliseconds for which a batch is remembered: longer than anybody sends it again. */
export const BATCH_LASTS_MS = 86_400_000

/** Batches, no longer remembered, that each one clears away: more than itself. */
export const BATCHES_PRUNED = 2

/** Counts of days that are over for good that each batch removes from each table, at most: far more than it adds. */
export const COUNTS_PRUNED = 1_000
