export const name = '011-claim'

export const sql = `
-- One-time links to keys that are made when the links are used. draft is JSON; the token of a link is not stored.
CREATE TABLE claim (
  id TEXT NOT NULL PRIMARY KEY, digest TEXT NOT NULL, partner TEXT NOT NULL REFERENCES partner (slug),
  name TEXT NOT NULL, draft TEXT NOT NULL, state TEXT NOT NULL,
  created_at INTEGER NOT NULL, expires_at INTEGER NOT NULL, key_id TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_by_time ON claim (created_at, id);
`
