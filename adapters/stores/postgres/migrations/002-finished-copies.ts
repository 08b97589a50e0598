/** Frozen: a change of the schema is another migration. */
export const name = '002-finished-copies'

export const servedFrom = 1

export const sql = `
-- The store that this one was copied from, and what this one was when that was finished: for as long as it still is, more
-- can be copied from there.
ALTER TABLE partner_api.store ADD COLUMN copied_as TEXT;
`
