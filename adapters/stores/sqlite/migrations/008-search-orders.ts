/** Frozen: a change of the schema is another migration. */
export const name = '008-search-orders'

export const sql = `
-- search holds the folded words of a profile and, if it is listed, its filter terms: ~AUDIENCE (~ for every partner),
-- =COUNTRY, @INDUSTRY and =COUNTRY@INDUSTRY, each between spaces.
CREATE TABLE profile_with_terms (
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

INSERT INTO profile_with_terms
SELECT p.id, p.slug, p.country, p.industry, p.published_at, p.updated_at, p.card, p.search || ifnull((
  SELECT group_concat(' ~' || l.audience, '') || ' =' || p.country || ' @' || p.industry ||
    ' =' || p.country || '@' || p.industry
  FROM listing l WHERE l.profile = p.id
), '') || ' ', p.detail
FROM profile p ORDER BY p.id;

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

INSERT INTO rank_name
SELECT row_number() OVER (ORDER BY name_key, slug) * (4294967296 / (count(*) OVER () + 1)), name_key, slug, profile
FROM (SELECT DISTINCT name_key, slug, profile FROM listing) ORDER BY 1;

INSERT INTO rank_newest
SELECT row_number() OVER (ORDER BY recency, slug) * (4294967296 / (count(*) OVER () + 1)), recency, slug, profile
FROM (SELECT DISTINCT recency, slug, profile FROM listing) ORDER BY 1;

-- One index of profile.search for each order. Rows are found by label, so that matches come in the order of the page
-- from any position, and each has the term #LABEL (the first 16 of 32 bits, hexadecimal): its first digits are a window.
CREATE VIRTUAL TABLE search_name USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, prefix = '1 2 3 4 5', tokenize = "ascii tokenchars '~=@#-'"
);
CREATE VIRTUAL TABLE search_newest USING fts5 (
  words, content = '', contentless_delete = 1, detail = none, prefix = '1 2 3 4 5', tokenize = "ascii tokenchars '~=@#-'"
);

INSERT INTO search_name (rowid, words)
SELECT r.label, p.search || printf('#%04x', r.label >> 16)
FROM rank_name r CROSS JOIN profile_with_terms p ON p.id = r.profile ORDER BY r.label;

INSERT INTO search_newest (rowid, words)
SELECT r.label, p.search || printf('#%04x', r.label >> 16)
FROM rank_newest r CROSS JOIN profile_with_terms p ON p.id = r.profile ORDER BY r.label;

-- Words that are longer than the prefixes that are indexed. One that no profile has any more does no harm.
CREATE TABLE long_word (
  word TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

INSERT OR IGNORE INTO long_word
SELECT w.value FROM listing l CROSS JOIN profile p ON p.id = l.profile
CROSS JOIN json_each('["' || replace(trim(p.search), ' ', '","') || '"]') w WHERE length(w.value) > 5;

DROP TABLE profile_word;
DROP TABLE listing;
DROP TABLE profile;
ALTER TABLE profile_with_terms RENAME TO profile;

-- An import that builds new tables beside these, and when it last did something.
ALTER TABLE store ADD COLUMN import_id TEXT;
ALTER TABLE store ADD COLUMN import_at INTEGER;
`
