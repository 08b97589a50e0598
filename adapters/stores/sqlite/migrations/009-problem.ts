export const name = '009-problem'

export const sql = `
-- Requests of keys that were answered with a problem, for 7 days.
CREATE TABLE problem (
  key_id TEXT NOT NULL,
  at INTEGER NOT NULL,
  id TEXT NOT NULL,
  partner TEXT NOT NULL,
  environment TEXT NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (key_id, at, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX problem_by_time ON problem (at, id);
CREATE INDEX problem_by_partner ON problem (partner, environment, at, id);
`
