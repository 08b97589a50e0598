export const name = '007-module'

export const sql = `
CREATE TABLE module (
  name TEXT PRIMARY KEY,
  scope TEXT NOT NULL UNIQUE,
  feature TEXT NOT NULL,
  position INTEGER NOT NULL
) STRICT;
ALTER TABLE partner ADD COLUMN own_modules TEXT;
ALTER TABLE partner_key ADD COLUMN own_scopes TEXT;
`
