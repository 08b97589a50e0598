/** Frozen: a change of the schema is another migration. */
export const name = '004-copies'

export const sql = `
-- Names the store that a copy into this one is under way from; until it is done, nobody may use it.
ALTER TABLE store ADD COLUMN copied_from TEXT;
`
