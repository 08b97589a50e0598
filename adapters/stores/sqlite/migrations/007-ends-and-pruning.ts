/** Frozen: a change of the schema is another migration. */
export const name = '007-ends-and-pruning'

export const sql = `
-- 1: the key was replaced without an overlap. It has ended, whatever any clock says; retires_at tells when.
ALTER TABLE partner_key ADD COLUMN retired INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1));

-- What is too old is found by its day.
CREATE INDEX usage_by_day ON usage (day);
CREATE INDEX signup_tally_by_day ON signup_tally (day);
`
