export const name = '001-store'

export const sql = `
-- "papi": tells a store from the database of another program.
PRAGMA application_id = 0x70617069;

-- The one row of settings and counters. The id keeps the revisions of one file from equalling another file's.
CREATE TABLE store (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  id TEXT NOT NULL,
  key_prefix TEXT NOT NULL,
  cursor_secret TEXT NOT NULL,
  facts_changes INTEGER NOT NULL DEFAULT 0,
  content_changes INTEGER NOT NULL DEFAULT 0,
  -- The end of the audit log, kept apart from it: a log that was cut off no longer ends there.
  audit_sequence INTEGER NOT NULL DEFAULT 0,
  audit_hash TEXT NOT NULL DEFAULT '',
  -- While a copy into this store is incomplete, every program refuses it.
  is_incomplete INTEGER NOT NULL DEFAULT 0,
  -- An import that builds new tables beside those of profiles, and the time of its last step.
  import_id TEXT,
  import_at INTEGER
) STRICT;

-- modules, tags, self_service and the scopes of a key are words with a space between two, limits and allow are JSON; all
-- are NULL when there are none. Instants are milliseconds.
CREATE TABLE partner (
  slug TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'removed')),
  modules TEXT,
  limits TEXT,
  created_at INTEGER NOT NULL,
  contact TEXT,
  tags TEXT,
  external_id TEXT,
  note TEXT,
  self_service TEXT
) STRICT, WITHOUT ROWID;

-- end_recency is minus the instant at which the key expired or its overlap ended, NULL when there is none or it was
-- revoked by then.
CREATE TABLE partner_key (
  id TEXT PRIMARY KEY,
  partner TEXT NOT NULL REFERENCES partner (slug),
  name TEXT NOT NULL,
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  digest TEXT NOT NULL,
  hint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled', 'retired', 'revoked')),
  scopes TEXT,
  allow TEXT,
  limits TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  retires_at INTEGER,
  predecessor_id TEXT,
  successor_id TEXT,
  last_used_at INTEGER,
  owner TEXT,
  tags TEXT,
  revoked_at INTEGER,
  end_recency INTEGER GENERATED ALWAYS AS (
    CASE WHEN state <> 'revoked' OR revoked_at > min(ifnull(expires_at, retires_at), ifnull(retires_at, expires_at))
    THEN -min(ifnull(expires_at, retires_at), ifnull(retires_at, expires_at)) END
  ) VIRTUAL
) STRICT, WITHOUT ROWID;

-- Lists are read in pages, and no page sorts or skips rows. Each index ends with the primary key, which SQLite adds.
CREATE INDEX partner_key_by_partner ON partner_key (partner, created_at);
CREATE INDEX partner_key_ended ON partner_key (partner, end_recency) WHERE end_recency IS NOT NULL;
CREATE INDEX partner_key_successors ON partner_key (predecessor_id) WHERE predecessor_id IS NOT NULL;

-- Has every column by which lists of all keys are filtered: a filter that few keys meet reads only the index. Without it,
-- each key is looked up at a random place of the table, which takes 30 times as long.
CREATE INDEX partner_key_listed ON partner_key
  (created_at, id, state, expires_at, retires_at, environment, scopes, last_used_at);

-- Has what partner_key_listed has, of keys with tags: a list of those with one tag reads only the index.
CREATE INDEX partner_key_tagged ON partner_key
  (created_at, id, tags, state, expires_at, retires_at, environment, scopes, last_used_at) WHERE tags IS NOT NULL;

-- Imported keys are found by their digest, which is longer than that of other keys.
CREATE UNIQUE INDEX partner_key_imported ON partner_key (digest) WHERE length(digest) > 64;

-- How another system made the digests of its keys. The digest of an imported key is SCHEME:DIGEST. secret is the HMAC
-- secret in hexadecimal, or empty.
CREATE TABLE digest_scheme (
  id TEXT PRIMARY KEY,
  algorithm TEXT NOT NULL CHECK (algorithm IN ('sha256', 'hmac-sha256')),
  prefix TEXT NOT NULL,
  secret TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One-time links to keys that are made when the links are used. draft is JSON; the token of a link is not stored.
CREATE TABLE claim (
  id TEXT PRIMARY KEY,
  digest TEXT NOT NULL,
  partner TEXT NOT NULL REFERENCES partner (slug),
  name TEXT NOT NULL,
  draft TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL,
  key_id TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX claim_by_time ON claim (created_at, id);

CREATE TABLE module (
  name TEXT PRIMARY KEY,
  scope TEXT NOT NULL UNIQUE,
  feature TEXT NOT NULL,
  position INTEGER NOT NULL
) STRICT;

CREATE TABLE endpoint (
  service TEXT NOT NULL,
  name TEXT NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  scope TEXT,
  limits TEXT,
  PRIMARY KEY (service, name)
) STRICT;

CREATE TABLE industry (
  slug TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  parent_slug TEXT REFERENCES industry (slug) DEFERRABLE INITIALLY DEFERRED
) STRICT, WITHOUT ROWID;

CREATE INDEX industry_by_parent ON industry (parent_slug) WHERE parent_slug IS NOT NULL;

CREATE TABLE plan (
  slug TEXT PRIMARY KEY,
  record TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE banner (
  partner TEXT PRIMARY KEY REFERENCES partner (slug),
  record TEXT NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- search holds the folded words of a profile and, if it is listed, its filter terms: ~AUDIENCE (~ for every partner),
-- =COUNTRY, @INDUSTRY and =COUNTRY@INDUSTRY, each between spaces. It precedes detail, because a search reads it of many
-- rows and detail may fill further pages.
CREATE TABLE profile (
  id INTEGER PRIMARY KEY,
  slug TEXT NOT NULL UNIQUE,
  country TEXT NOT NULL,
  industry TEXT NOT NULL REFERENCES industry (slug),
  published_at INTEGER,
  updated_at INTEGER NOT NULL,
  card TEXT NOT NULL,
  search TEXT NOT NULL,
  detail TEXT NOT NULL,
  UNIQUE (industry, id)
) STRICT;

-- The two orders of the directory. Labels grow along an order and leave gaps for what comes between. key is the folded
-- name, or minus the instant of publication.
CREATE TABLE rank_name (
  label INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  slug TEXT NOT NULL,
  profile INTEGER NOT NULL,
  UNIQUE (key, slug)
) STRICT;

CREATE TABLE rank_newest (
  label INTEGER PRIMARY KEY,
  key INTEGER NOT NULL,
  slug TEXT NOT NULL,
  profile INTEGER NOT NULL,
  UNIQUE (key, slug)
) STRICT;

-- One index of profile.search for each order. Rows are found by label, so that matches come in the order of the page
-- from any position, and each has the term #LABEL (the first 16 of 32 bits, hexadecimal): its first digits are a window.
CREATE VIRTUAL TABLE search_name USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, prefix = '1 2 3 4 5', tokenize = "ascii tokenchars '~=@#-'"
);
CREATE VIRTUAL TABLE search_newest USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, prefix = '1 2 3 4 5', tokenize = "ascii tokenchars '~=@#-'"
);

-- Words that are longer than the indexed prefixes. One that no profile has any more does no harm.
CREATE TABLE long_word (
  word TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- How many listings there are, due or not: counting a million rows for a response would take tens of milliseconds.
CREATE TABLE tally (
  audience TEXT NOT NULL,
  country TEXT NOT NULL,
  industry TEXT NOT NULL,
  listings INTEGER NOT NULL,
  PRIMARY KEY (audience, country, industry)
) STRICT, WITHOUT ROWID;

-- record is JSON: no query looks into it. recency is minus the instant: newest first is then ascending, as ids are.
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

-- The signup that an idempotency key was used for, until it expires, and the fingerprint of its body.
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

-- Live signups of each day by plan and by country, '' for none: a summary adds them up.
CREATE TABLE signup_tally (
  partner TEXT NOT NULL,
  dimension TEXT NOT NULL CHECK (dimension IN ('plan', 'country')),
  day TEXT NOT NULL,
  value TEXT NOT NULL,
  signups INTEGER NOT NULL,
  PRIMARY KEY (partner, dimension, day, value)
) STRICT, WITHOUT ROWID;

CREATE INDEX signup_tally_by_day ON signup_tally (day);

CREATE TABLE usage (
  partner TEXT NOT NULL,
  day TEXT NOT NULL,
  endpoint TEXT NOT NULL,
  requests INTEGER NOT NULL,
  errors INTEGER NOT NULL,
  PRIMARY KEY (partner, day, endpoint)
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_by_day ON usage (day);

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

-- The batches of counts that were added already, for as long as they may be sent again.
CREATE TABLE usage_batch (
  id TEXT PRIMARY KEY,
  added_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_batch_age ON usage_batch (added_at);

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

-- events and secrets are JSON; secrets are encrypted. partner is NULL for all partners.
CREATE TABLE webhook (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  partner TEXT,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
  created_at INTEGER NOT NULL,
  secrets TEXT NOT NULL,
  failing_since INTEGER,
  disabled_at INTEGER
) STRICT, WITHOUT ROWID;

-- A row for each event and webhook, which may have been removed since. due_at is when the next attempt is due, a lease
-- ends, or the delivery was settled.
CREATE TABLE webhook_delivery (
  webhook TEXT NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  partner TEXT,
  created_at INTEGER NOT NULL,
  payload TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  last_status INTEGER,
  last_error TEXT,
  PRIMARY KEY (webhook, id)
) STRICT;

CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook, state, due_at, id);
CREATE INDEX webhook_delivery_newest ON webhook_delivery (webhook, state, created_at, id);

-- The audit log, append-only. hash covers the row and the hash before it.
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
  hash TEXT NOT NULL,
  recency INTEGER NOT NULL GENERATED ALWAYS AS (-at) VIRTUAL
) STRICT;

CREATE INDEX audit_newest ON audit (partner, type, recency, id);
CREATE INDEX audit_by_partner ON audit (partner);
CREATE INDEX audit_by_key ON audit (key_id) WHERE key_id IS NOT NULL;
`
