/** Frozen: a change of the schema is another migration. */
export const name = '001-facts-and-content'

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
  content_changes INTEGER NOT NULL DEFAULT 0
) STRICT;

-- modules, and the scopes of a key, are bit sets; limits and allow are JSON, or NULL when there are none. Instants
-- are milliseconds.
CREATE TABLE partner (
  slug TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'suspended', 'removed')),
  modules INTEGER NOT NULL,
  limits TEXT,
  created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE partner_key (
  id TEXT PRIMARY KEY,
  partner TEXT NOT NULL REFERENCES partner (slug),
  name TEXT NOT NULL,
  environment TEXT NOT NULL CHECK (environment IN ('live', 'test')),
  digest TEXT NOT NULL,
  hint TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled', 'revoked')),
  scopes INTEGER NOT NULL,
  allow TEXT,
  limits TEXT,
  created_at INTEGER NOT NULL,
  expires_at INTEGER,
  retires_at INTEGER,
  successor_id TEXT,
  last_used_at INTEGER
) STRICT, WITHOUT ROWID;

CREATE INDEX partner_key_by_partner ON partner_key (partner, created_at, id);

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

-- search stands before detail, because a search reads it of many rows and detail may fill further pages.
CREATE TABLE profile (
  id INTEGER PRIMARY KEY,
  slug TEXT NOT NULL UNIQUE,
  country TEXT NOT NULL,
  industry TEXT NOT NULL REFERENCES industry (slug),
  published_at INTEGER,
  updated_at INTEGER NOT NULL,
  card TEXT NOT NULL,
  search TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

CREATE INDEX profile_by_industry ON profile (industry);

-- Who sees which profile: a row for every partner ('') or one for each that it is shared with; none for a draft.
-- recency is minus the instant of publication: newest first is then ascending, as slugs are.
CREATE TABLE listing (
  profile INTEGER NOT NULL,
  audience TEXT NOT NULL,
  country TEXT NOT NULL,
  industry TEXT NOT NULL,
  name_key TEXT NOT NULL,
  slug TEXT NOT NULL,
  recency INTEGER NOT NULL,
  PRIMARY KEY (profile, audience)
) STRICT, WITHOUT ROWID;

-- An index for each filter in each order, so that no page sorts or skips rows. By name, recency says what is due.
CREATE INDEX listing_name ON listing (audience, name_key, slug, recency);
CREATE INDEX listing_name_country ON listing (audience, country, name_key, slug, recency);
CREATE INDEX listing_name_industry ON listing (audience, industry, name_key, slug, recency);
CREATE INDEX listing_name_both ON listing (audience, country, industry, name_key, slug, recency);
CREATE INDEX listing_newest ON listing (audience, recency, slug);
CREATE INDEX listing_newest_country ON listing (audience, country, recency, slug);
CREATE INDEX listing_newest_industry ON listing (audience, industry, recency, slug);
CREATE INDEX listing_newest_both ON listing (audience, country, industry, recency, slug);

-- How many listings there are, due or not: counting a million rows for an answer would take tens of milliseconds.
CREATE TABLE tally (
  audience TEXT NOT NULL,
  country TEXT NOT NULL,
  industry TEXT NOT NULL,
  listings INTEGER NOT NULL,
  PRIMARY KEY (audience, country, industry)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER listing_added AFTER INSERT ON listing BEGIN
  INSERT INTO tally VALUES (new.audience, new.country, new.industry, 1)
  ON CONFLICT DO UPDATE SET listings = listings + 1;
END;

CREATE TRIGGER listing_removed AFTER DELETE ON listing BEGIN
  UPDATE tally SET listings = listings - 1
  WHERE audience = old.audience AND country = old.country AND industry = old.industry;
END;

-- Words arrive folded. The ascii tokenizer splits them at spaces and nowhere else, as the fallback that looks into
-- profile.search does; unicode61 would have ideas of its own. Rows are found by profile.id.
CREATE VIRTUAL TABLE profile_word USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii', prefix = '1 2 3 4 5'
);
`
