export const name = '010-details'

export const sql = `
-- tags and self_service are words with a space between two.
ALTER TABLE partner ADD COLUMN contact TEXT;
ALTER TABLE partner ADD COLUMN tags TEXT;
ALTER TABLE partner ADD COLUMN external_id TEXT;
ALTER TABLE partner ADD COLUMN note TEXT;
ALTER TABLE partner ADD COLUMN self_service TEXT;
ALTER TABLE partner_key ADD COLUMN owner TEXT;
ALTER TABLE partner_key ADD COLUMN tags TEXT;

-- Has what partner_key_listed has, of keys with tags: a list of those with one tag reads only the index.
CREATE INDEX partner_key_tagged ON partner_key
  (created_at, id, tags, state, expires_at, retires_at, environment, scopes, last_used_at) WHERE tags IS NOT NULL;
`
