/** Frozen: a change of the schema is another migration. */
export const name = '004-ends-and-pruning'

/** Older programs would judge an ended key by its instant, and write audit entries that cannot be replayed. */
export const servedFrom = 4

export const sql = `
-- 1: the key was replaced without an overlap. It has ended, whatever any clock says; retires_at tells when.
ALTER TABLE partner_api.partner_key ADD COLUMN retired INTEGER NOT NULL DEFAULT 0 CHECK (retired IN (0, 1));

-- Milliseconds by which the replica's clock is ahead of the server's, 0 while that is within its bounds.
ALTER TABLE partner_api.replica ADD COLUMN skew_ms BIGINT NOT NULL DEFAULT 0;

-- What is too old is found by its day.
CREATE INDEX usage_by_day ON partner_api.usage (day);
CREATE INDEX signup_tally_by_day ON partner_api.signup_tally (day);
`
