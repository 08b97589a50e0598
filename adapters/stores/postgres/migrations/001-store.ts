export const name = '001-store'

export const servedFrom = 1

export const sql = `
-- One row: the settings, and the end of the audit log, so that a truncated log is detected. id keeps the revisions of two
-- stores apart. served_from is the oldest version of the schema whose programs may use this one. While a copy into
-- this store is_incomplete, every program refuses it.
CREATE TABLE partner_api.store (
  id TEXT PRIMARY KEY,
  key_prefix TEXT NOT NULL,
  cursor_secret TEXT NOT NULL,
  audit_sequence BIGINT NOT NULL,
  audit_hash TEXT NOT NULL,
  served_from INTEGER NOT NULL,
  is_incomplete BOOLEAN NOT NULL DEFAULT FALSE
);

-- A row for each kind, which a change locks first: a long import does not delay the revocation of a key. mark is random: a
-- server that takes over without the last changes counts to the same number again.
CREATE TABLE partner_api.revision (
  kind TEXT PRIMARY KEY CHECK (kind IN ('facts', 'content')),
  changes BIGINT NOT NULL,
  mark TEXT NOT NULL DEFAULT ''
);

-- modules, tags, self_service and the scopes of a key are words with a space between two, or NULL; limits and allow are
-- JSON or NULL. Instants are milliseconds.
CREATE TABLE partner_api.partner (
  slug TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'removed')),
  modules TEXT,
  limits TEXT,
  created_at BIGINT NOT NULL,
  contact TEXT,
  tags TEXT,
  external_id TEXT,
  note TEXT,
  self_service TEXT
);

-- end_recency is minus the instant at which the key expired or its overlap ended, NULL without one or if it was revoked
-- before.
CREATE TABLE partner_api.partner_key (
  id TEXT COLLATE "C" PRIMARY KEY,
  partner TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner (slug),
  name TEXT NOT NULL,
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  digest TEXT NOT NULL,
  hint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled', 'retired', 'revoked')),
  scopes TEXT,
  allow TEXT,
  limits TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  retires_at BIGINT,
  predecessor_id TEXT,
  successor_id TEXT,
  last_used_at BIGINT,
  owner TEXT,
  tags TEXT,
  revoked_at BIGINT,
  end_recency BIGINT GENERATED ALWAYS AS (
    CASE WHEN state <> 'revoked'
      OR revoked_at > least(coalesce(expires_at, retires_at), coalesce(retires_at, expires_at))
    THEN -least(coalesce(expires_at, retires_at), coalesce(retires_at, expires_at)) END
  ) STORED
);

-- Indexing an expression keeps the planner from scanning this index for the keys of one partner.
CREATE INDEX partner_key_oldest ON partner_api.partner_key ((created_at + 0), id);
CREATE INDEX partner_key_by_partner ON partner_api.partner_key (partner, created_at, id);
CREATE INDEX partner_key_ended ON partner_api.partner_key (partner, end_recency, id) WHERE end_recency IS NOT NULL;
CREATE INDEX partner_key_successors ON partner_api.partner_key (predecessor_id) WHERE predecessor_id IS NOT NULL;
CREATE INDEX partner_key_tagged ON partner_api.partner_key ((created_at + 0), id) WHERE tags IS NOT NULL;
-- Imported keys are found by their digest, which is longer than that of other keys.
CREATE UNIQUE INDEX partner_key_imported ON partner_api.partner_key (digest) WHERE length(digest) > 64;

-- How another system made the digests of its keys. The digest of an imported key is SCHEME:DIGEST. secret is the HMAC
-- secret in hexadecimal, or empty.
CREATE TABLE partner_api.digest_scheme (
  id TEXT COLLATE "C" PRIMARY KEY,
  algorithm TEXT NOT NULL CHECK (algorithm IN ('sha256', 'hmac-sha256')),
  prefix TEXT NOT NULL,
  secret TEXT NOT NULL
);

-- One-time links to keys that are made when the links are used. draft is JSON; the token of a link is not stored.
CREATE TABLE partner_api.claim (
  id TEXT COLLATE "C" PRIMARY KEY,
  digest TEXT NOT NULL,
  partner TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner (slug),
  name TEXT NOT NULL,
  draft TEXT NOT NULL,
  state TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  key_id TEXT
);

CREATE INDEX claim_by_time ON partner_api.claim (created_at, id);

CREATE TABLE partner_api.module (
  name TEXT COLLATE "C" PRIMARY KEY,
  scope TEXT NOT NULL UNIQUE,
  feature TEXT NOT NULL,
  position BIGINT NOT NULL
);

CREATE TABLE partner_api.endpoint (
  service TEXT COLLATE "C" NOT NULL,
  name TEXT COLLATE "C" NOT NULL,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  scope TEXT,
  limits TEXT,
  PRIMARY KEY (service, name)
);

CREATE TABLE partner_api.industry (
  slug TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL,
  parent_slug TEXT COLLATE "C" REFERENCES partner_api.industry (slug)
);

CREATE INDEX industry_by_parent ON partner_api.industry (parent_slug) WHERE parent_slug IS NOT NULL;

CREATE TABLE partner_api.plan (
  slug TEXT COLLATE "C" PRIMARY KEY,
  record TEXT NOT NULL
);

CREATE TABLE partner_api.banner (
  partner TEXT COLLATE "C" PRIMARY KEY REFERENCES partner_api.partner (slug),
  record TEXT NOT NULL,
  updated_at BIGINT NOT NULL
);

CREATE TABLE partner_api.profile (
  slug TEXT COLLATE "C" PRIMARY KEY,
  country TEXT NOT NULL,
  industry TEXT COLLATE "C" NOT NULL REFERENCES partner_api.industry (slug),
  published_at BIGINT,
  updated_at BIGINT NOT NULL,
  card TEXT NOT NULL,
  detail TEXT NOT NULL
);

CREATE INDEX profile_by_industry ON partner_api.profile (industry);

-- Who sees which profile: one row for all partners ('') or one for each that it is shared with; none for a draft. recency
-- is minus the instant of publication: newest first is then ascending, as slugs are.
CREATE TABLE partner_api.listing (
  slug TEXT COLLATE "C" NOT NULL,
  audience TEXT COLLATE "C" NOT NULL,
  country TEXT COLLATE "C" NOT NULL,
  industry TEXT COLLATE "C" NOT NULL,
  name_key TEXT COLLATE "C" NOT NULL,
  recency BIGINT NOT NULL,
  words TSVECTOR NOT NULL,
  PRIMARY KEY (slug, audience)
);

-- An index for each filter in each order, so that no page sorts or skips rows. recency tells what is due without reading
-- the table, whose rows are long.
CREATE INDEX listing_name ON partner_api.listing (audience, name_key, slug, recency);
CREATE INDEX listing_name_country ON partner_api.listing (audience, country, name_key, slug, recency);
CREATE INDEX listing_name_industry ON partner_api.listing (audience, industry, name_key, slug, recency);
CREATE INDEX listing_name_both ON partner_api.listing (audience, country, industry, name_key, slug, recency);
CREATE INDEX listing_newest ON partner_api.listing (audience, recency, slug);
CREATE INDEX listing_newest_country ON partner_api.listing (audience, country, recency, slug);
CREATE INDEX listing_newest_industry ON partner_api.listing (audience, industry, recency, slug);
CREATE INDEX listing_newest_both ON partner_api.listing (audience, country, industry, recency, slug);
CREATE INDEX listing_words ON partner_api.listing USING gin (words);

-- Numbers of listings, due or not: counting a million rows would take tens of milliseconds.
CREATE TABLE partner_api.tally (
  audience TEXT COLLATE "C" NOT NULL,
  country TEXT COLLATE "C" NOT NULL,
  industry TEXT COLLATE "C" NOT NULL,
  listings BIGINT NOT NULL,
  PRIMARY KEY (audience, country, industry)
);

-- record is JSON. recency is minus the instant of creation.
CREATE TABLE partner_api.signup (
  id TEXT COLLATE "C" PRIMARY KEY,
  partner TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner (slug),
  key_id TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner_key (id),
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  created_at BIGINT NOT NULL,
  record TEXT NOT NULL,
  recency BIGINT NOT NULL
);

-- By created_at for all, by recency for one partner: the planner must not scan the first index for the second list.
CREATE INDEX signup_newest ON partner_api.signup (created_at DESC, id);
CREATE INDEX signup_newest_of_partner ON partner_api.signup (partner, environment, recency, id);

-- The signup of an idempotency key until it expires, and the fingerprint of its body.
CREATE TABLE partner_api.idempotency (
  partner TEXT COLLATE "C" NOT NULL,
  environment TEXT NOT NULL,
  key TEXT COLLATE "C" NOT NULL,
  fingerprint TEXT NOT NULL,
  signup_id TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  PRIMARY KEY (partner, environment, key)
);

CREATE INDEX idempotency_expiry ON partner_api.idempotency (expires_at);

-- Live signups of each day by plan and by country, '' for none. The slots of a number are added up: concurrent signups of
-- a partner do not wait for one row.
CREATE TABLE partner_api.signup_tally (
  partner TEXT COLLATE "C" NOT NULL,
  dimension TEXT NOT NULL CHECK (dimension IN ('plan', 'country')),
  day TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  slot INTEGER NOT NULL,
  signups BIGINT NOT NULL,
  PRIMARY KEY (partner, dimension, day, value, slot)
);

CREATE INDEX signup_tally_by_day ON partner_api.signup_tally (day);

CREATE TABLE partner_api.usage (
  partner TEXT COLLATE "C" NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  PRIMARY KEY (partner, day, endpoint)
);

CREATE INDEX usage_by_day ON partner_api.usage (day);

-- Requests of each key, live and test. usage has those of live keys by partner, which reports add up.
CREATE TABLE partner_api.key_usage (
  key_id TEXT COLLATE "C" NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  PRIMARY KEY (key_id, day, endpoint)
);

CREATE INDEX key_usage_by_day ON partner_api.key_usage (day);

-- Batches of counts that were added, while they may be sent again.
CREATE TABLE partner_api.usage_batch (
  id TEXT PRIMARY KEY,
  added_at BIGINT NOT NULL
);

CREATE INDEX usage_batch_age ON partner_api.usage_batch (added_at);

-- Requests of keys that were answered with a problem, for 7 days.
CREATE TABLE partner_api.problem (
  key_id TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  partner TEXT COLLATE "C" NOT NULL,
  environment TEXT COLLATE "C" NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (key_id, at, id)
);

CREATE INDEX problem_by_time ON partner_api.problem (at, id);
CREATE INDEX problem_by_partner ON partner_api.problem (partner, environment, at, id);

-- The audit log, append-only. hash covers the row and the hash before it.
CREATE TABLE partner_api.audit (
  sequence BIGINT PRIMARY KEY,
  id TEXT COLLATE "C" NOT NULL UNIQUE,
  at BIGINT NOT NULL,
  actor TEXT NOT NULL,
  type TEXT NOT NULL,
  partner TEXT COLLATE "C",
  key_id TEXT,
  subject TEXT,
  before TEXT,
  after TEXT,
  hash TEXT NOT NULL,
  recency BIGINT NOT NULL
);

CREATE INDEX audit_newest ON partner_api.audit (partner, type, recency, id);
CREATE INDEX audit_by_partner ON partner_api.audit (partner, (sequence + 0));
CREATE INDEX audit_by_key ON partner_api.audit (key_id) WHERE key_id IS NOT NULL;

-- events and secrets are JSON; secrets are encrypted. partner is NULL for all partners.
CREATE TABLE partner_api.webhook (
  id TEXT COLLATE "C" PRIMARY KEY,
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  partner TEXT COLLATE "C",
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
  created_at BIGINT NOT NULL,
  secrets TEXT NOT NULL,
  failing_since BIGINT,
  disabled_at BIGINT
);

-- A row for each event and webhook, which may have been removed since: a foreign key would have signups lock it. due_at is
-- when the next attempt is due, a lease ends, or the delivery was settled.
CREATE TABLE partner_api.webhook_delivery (
  webhook TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  type TEXT NOT NULL,
  partner TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  payload TEXT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL,
  due_at BIGINT NOT NULL,
  last_status INTEGER,
  last_error TEXT,
  PRIMARY KEY (webhook, id)
);

CREATE INDEX webhook_delivery_due ON partner_api.webhook_delivery (webhook, state, due_at, id);
CREATE INDEX webhook_delivery_newest ON partner_api.webhook_delivery (webhook, state, created_at, id);

-- Running processes, and the revisions that they have applied, '' before the first. seen_at is the server's clock, and
-- skew_ms is by how much theirs is ahead of it, 0 within its bounds.
CREATE TABLE partner_api.replica (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  lease_ms INTEGER NOT NULL,
  facts TEXT NOT NULL,
  content TEXT NOT NULL,
  seen_at BIGINT NOT NULL,
  skew_ms BIGINT NOT NULL DEFAULT 0
);

-- What replicas have leased of quotas; granted is the last lease. quota is the one under which they lease since term, and
-- held is leased and not reported as used. Times are the server's.
CREATE TABLE partner_api.quota_window (
  policy TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  opened_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  taken BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  quota BIGINT NOT NULL,
  term BIGINT NOT NULL,
  held BIGINT NOT NULL,
  PRIMARY KEY (policy, subject)
);

CREATE INDEX quota_window_end ON partner_api.quota_window (ends_at);
`
