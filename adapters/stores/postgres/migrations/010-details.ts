export const name = '010-details'

/** Servers of older versions go on. Make changes with this version: what older ones write contradicts the audit log. */
export const servedFrom = 1

export const sql = `
-- tags and self_service are words with a space between two.
ALTER TABLE partner_api.partner
  ADD COLUMN contact TEXT,
  ADD COLUMN tags TEXT,
  ADD COLUMN external_id TEXT,
  ADD COLUMN note TEXT,
  ADD COLUMN self_service TEXT;
ALTER TABLE partner_api.partner_key ADD COLUMN owner TEXT, ADD COLUMN tags TEXT;

CREATE INDEX partner_key_tagged ON partner_api.partner_key ((created_at + 0), id) WHERE tags IS NOT NULL;
`
