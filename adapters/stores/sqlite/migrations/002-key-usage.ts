export const name = '002-key-usage'

export const sql = `
-- Requests of each key, live and test. usage has those of live keys by partner, which reports add up.
CREATE TABLE key_usage (
  key_id TEXT NOT NULL,
  day TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  PRIMARY KEY (key_id, day, endpoint)
) STRICT, WITHOUT ROWID;

CREATE INDEX key_usage_by_day ON key_usage (day);
`
