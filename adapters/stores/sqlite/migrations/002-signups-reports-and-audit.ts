/** Frozen: a change of the schema is another migration. */
export const name = '002-signups-reports-and-audit'

export const sql = `
-- record is JSON: no query looks into what a form sent. recency is minus the instant: newest first is then ascending,
-- as ids are. environment stands in an index, because reports have nothing of what test keys did.
CREATE TABLE signup (
  id TEXT PRIMARY KEY,
  partner TEXT NOT NULL REFERENCES partner (slug),
  key_id TEXT NOT NULL REFERENCES partner_key (id),
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  created_at INTEGER NOT NULL,
  record TEXT NOT NULL,
  recency INTEGER NOT NULL GENERATED ALWAYS AS (-created_at) VIRTUAL
) STRICT;

CREATE INDEX signup_newest ON signup (recency, id);
CREATE INDEX signup_newest_of_partner ON signup (partner, environment, recency, id);

-- Which signup an idempotency key stands for until it expires, and what its body was.
CREATE TABLE idempotency (
  partner TEXT NOT NULL,
  environment TEXT NOT NULL,
  key TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  signup_id TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  PRIMARY KEY (partner, environment, key)
) STRICT, WITHOUT ROWID;

CREATE INDEX idempotency_expiry ON idempotency (expires_at);

-- Live signups of each day by plan and by country, '' where there is none: a summary adds up what is counted already.
CREATE TABLE signup_tally (
  partner TEXT NOT NULL,
  dimension TEXT NOT NULL CHECK (dimension IN ('plan', 'country')),
  day TEXT NOT NULL,
  value TEXT NOT NULL,
  signups INTEGER NOT NULL,
  PRIMARY KEY (partner, dimension, day, value)
) STRICT, WITHOUT ROWID;

CREATE TABLE usage (
  partner TEXT NOT NULL,
  day TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  PRIMARY KEY (partner, day, endpoint)
) STRICT, WITHOUT ROWID;

-- The audit trail: rows are added and never changed. seal is over the row and the seal before it.
CREATE TABLE audit (
  sequence INTEGER PRIMARY KEY,
  id TEXT NOT NULL UNIQUE,
  at INTEGER NOT NULL,
  actor TEXT NOT NULL,
  type TEXT NOT NULL,
  partner TEXT,
  key_id TEXT,
  subject TEXT,
  before TEXT,
  after TEXT,
  seal TEXT NOT NULL,
  recency INTEGER NOT NULL GENERATED ALWAYS AS (-at) VIRTUAL
) STRICT;

CREATE INDEX audit_newest ON audit (partner, type, recency, id);

-- Where the trail ends, kept apart from it: an end that was cut off is missed.
ALTER TABLE store ADD COLUMN audit_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE store ADD COLUMN audit_seal TEXT NOT NULL DEFAULT '';

-- When a key was revoked; NULL also for those that were before this column was there. end_recency is minus the instant
-- at which the key expired or its overlap ended, NULL when there is none or it was revoked by then.
ALTER TABLE partner_key ADD COLUMN revoked_at INTEGER;
ALTER TABLE partner_key ADD COLUMN end_recency INTEGER GENERATED ALWAYS AS (
  CASE WHEN state <> 'revoked' OR revoked_at > min(ifnull(expires_at, retires_at), ifnull(retires_at, expires_at))
  THEN -min(ifnull(expires_at, retires_at), ifnull(retires_at, expires_at)) END
) VIRTUAL;

CREATE INDEX partner_key_ended ON partner_key (partner, end_recency, id) WHERE end_recency IS NOT NULL;
`
