export const name = '011-claim'

/** Servers of older versions go on: they know no links, and removing a partner with one does not revoke its links. */
export const servedFrom = 1

export const sql = `
-- One-time links to keys that are made when the links are used. draft is JSON; the token of a link is not stored.
CREATE TABLE partner_api.claim (
  id TEXT COLLATE "C" NOT NULL PRIMARY KEY, digest TEXT NOT NULL,
  partner TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner (slug),
  name TEXT NOT NULL, draft TEXT NOT NULL, state TEXT NOT NULL,
  created_at BIGINT NOT NULL, expires_at BIGINT NOT NULL, key_id TEXT
);

CREATE INDEX claim_by_time ON partner_api.claim (created_at, id);
`
