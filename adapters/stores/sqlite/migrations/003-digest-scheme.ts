export const name = '003-digest-scheme'

export const sql = `
-- How another system made the digests of its keys. The digest of an imported key is SCHEME:DIGEST. secret is the HMAC
-- secret in hexadecimal, or empty.
CREATE TABLE digest_scheme (
  id TEXT PRIMARY KEY,
  algorithm TEXT NOT NULL CHECK (algorithm IN ('sha256', 'hmac-sha256')),
  prefix TEXT NOT NULL,
  secret TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Imported keys are found by their digest, which is longer than that of other keys.
CREATE UNIQUE INDEX partner_key_imported ON partner_key (digest) WHERE length(digest) > 64;
`
