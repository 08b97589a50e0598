/** Frozen: a change of the schema is another migration. */
export const name = '001-store'

export const servedFrom = 1

export const sql = `
-- The one row of settings, and of where the audit trail ends: kept apart from it, so that an end that was cut off is
-- missed. The id keeps the revisions of one store from equalling another's. served_from is the oldest version of the
-- schema whose programs may go on with this one. copied_from names the store that a copy into this one is under way
-- from; until it is done, nobody may use it.
CREATE TABLE partner_api.store (
  id TEXT PRIMARY KEY,
  key_prefix TEXT NOT NULL,
  cursor_secret TEXT NOT NULL,
  audit_sequence BIGINT NOT NULL,
  audit_seal TEXT NOT NULL,
  served_from INTEGER NOT NULL,
  copied_from TEXT
);

-- How often what a kind of revision stands for was changed. A row each: whoever changes something takes the lock of
-- its kind first, and an import of an hour keeps no key from being revoked. mark is drawn for each change: a server that
-- takes over without the last ones counts to the same number once more, and then stands for something else.
CREATE TABLE partner_api.revision (
  kind TEXT PRIMARY KEY CHECK (kind IN ('facts', 'content')),
  changes BIGINT NOT NULL,
  mark TEXT NOT NULL DEFAULT ''
);

-- modules, and the scopes of a key, are bit sets; limits and allow are JSON, or NULL when there are none. Instants
-- are milliseconds.
CREATE TABLE partner_api.partner (
  slug TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'removed')),
  modules INTEGER NOT NULL,
  limits TEXT,
  created_at BIGINT NOT NULL
);

-- revoked_at is NULL also where nobody knows when that was. end_recency is minus the instant at which the key expired
-- or its overlap ended, NULL when there is none or it was revoked by then.
CREATE TABLE partner_api.partner_key (
  id TEXT COLLATE "C" PRIMARY KEY,
  partner TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner (slug),
  name TEXT NOT NULL,
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  digest TEXT NOT NULL,
  hint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled', 'revoked')),
  scopes INTEGER NOT NULL,
  allow TEXT,
  limits TEXT,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  retires_at BIGINT,
  successor_id TEXT,
  last_used_at BIGINT,
  revoked_at BIGINT,
  end_recency BIGINT GENERATED ALWAYS AS (
    CASE WHEN state <> 'revoked'
      OR revoked_at > least(coalesce(expires_at, retires_at), coalesce(retires_at, expires_at))
    THEN -least(coalesce(expires_at, retires_at), coalesce(retires_at, expires_at)) END
  ) STORED
);

CREATE INDEX partner_key_by_partner ON partner_api.partner_key (partner, created_at, id);
CREATE INDEX partner_key_ended ON partner_api.partner_key (partner, end_recency, id) WHERE end_recency IS NOT NULL;

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

-- Who sees which profile: a row for every partner ('') or one for each that it is shared with; none for a draft.
-- recency is minus the instant of publication: newest first is then ascending, as slugs are. words are folded before
-- they get here, and no dictionary of the server's has a say.
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

-- An index for each filter in each order, so that no page sorts or skips rows. By name, recency says what is due: no
-- page is read from the table, whose rows the words make long.
CREATE INDEX listing_name ON partner_api.listing (audience, name_key, slug, recency);
CREATE INDEX listing_name_country ON partner_api.listing (audience, country, name_key, slug, recency);
CREATE INDEX listing_name_industry ON partner_api.listing (audience, industry, name_key, slug, recency);
CREATE INDEX listing_name_both ON partner_api.listing (audience, country, industry, name_key, slug, recency);
CREATE INDEX listing_newest ON partner_api.listing (audience, recency, slug);
CREATE INDEX listing_newest_country ON partner_api.listing (audience, country, recency, slug);
CREATE INDEX listing_newest_industry ON partner_api.listing (audience, industry, recency, slug);
CREATE INDEX listing_newest_both ON partner_api.listing (audience, country, industry, recency, slug);
CREATE INDEX listing_words ON partner_api.listing USING gin (words);

-- How many listings there are, due or not: counting a million rows for an answer would take tens of milliseconds.
CREATE TABLE partner_api.tally (
  audience TEXT COLLATE "C" NOT NULL,
  country TEXT COLLATE "C" NOT NULL,
  industry TEXT COLLATE "C" NOT NULL,
  listings BIGINT NOT NULL,
  PRIMARY KEY (audience, country, industry)
);

-- record is JSON: no query looks into what a form sent. recency is minus the instant of creation. environment stands
-- in an index, because reports have nothing of what test keys did.
CREATE TABLE partner_api.signup (
  id TEXT COLLATE "C" PRIMARY KEY,
  partner TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner (slug),
  key_id TEXT COLLATE "C" NOT NULL REFERENCES partner_api.partner_key (id),
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  created_at BIGINT NOT NULL,
  record TEXT NOT NULL,
  recency BIGINT NOT NULL
);

-- All of them by created_at, those of a partner by recency: no plan takes the one index for the other, and looks for the
-- few of one partner among those of all.
CREATE INDEX signup_newest ON partner_api.signup (created_at DESC, id);
CREATE INDEX signup_newest_of_partner ON partner_api.signup (partner, environment, recency, id);

-- Which signup an idempotency key stands for until it expires, and what its body was.
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

-- Live signups of each day by plan and by country, '' where there is none: a summary adds up what is counted already.
-- Several slots hold one number together, so that the signups of a busy partner do not all wait for one row.
CREATE TABLE partner_api.signup_tally (
  partner TEXT COLLATE "C" NOT NULL,
  dimension TEXT NOT NULL CHECK (dimension IN ('plan', 'country')),
  day TEXT COLLATE "C" NOT NULL,
  value TEXT COLLATE "C" NOT NULL,
  slot INTEGER NOT NULL,
  signups BIGINT NOT NULL,
  PRIMARY KEY (partner, dimension, day, value, slot)
);

CREATE TABLE partner_api.usage (
  partner TEXT COLLATE "C" NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  PRIMARY KEY (partner, day, endpoint)
);

-- The batches of counts that were added already, for as long as somebody may send them again.
CREATE TABLE partner_api.usage_batch (
  id TEXT PRIMARY KEY,
  added_at BIGINT NOT NULL
);

CREATE INDEX usage_batch_age ON partner_api.usage_batch (added_at);

-- The audit trail: rows are added and never changed. seal is over the row and the seal before it.
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
  seal TEXT NOT NULL,
  recency BIGINT NOT NULL
);

CREATE INDEX audit_newest ON partner_api.audit (partner, type, recency, id);

-- Running processes: what they go by until when, and the revisions that they have applied, '' until they have applied
-- one. seen_at is the server's clock.
CREATE TABLE partner_api.replica (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  lease_ms INTEGER NOT NULL,
  facts TEXT NOT NULL,
  content TEXT NOT NULL,
  seen_at BIGINT NOT NULL
);

-- What replicas have taken out of quotas; granted is what the last of them got, which is how it learns that. Times are
-- the server's.
CREATE TABLE partner_api.quota_window (
  policy TEXT COLLATE "C" NOT NULL,
  subject TEXT COLLATE "C" NOT NULL,
  opened_at BIGINT NOT NULL,
  ends_at BIGINT NOT NULL,
  taken BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  PRIMARY KEY (policy, subject)
);

CREATE INDEX quota_window_end ON partner_api.quota_window (ends_at);
`
