export const name = '007-module'

/** Servers of older versions go on, as long as no module is defined. */
export const servedFrom = 1

export const sql = `
CREATE TABLE partner_api.module (
  name TEXT PRIMARY KEY,
  scope TEXT NOT NULL UNIQUE,
  feature TEXT NOT NULL,
  position BIGINT NOT NULL
);
ALTER TABLE partner_api.partner ADD COLUMN own_modules TEXT;
ALTER TABLE partner_api.partner_key ADD COLUMN own_scopes TEXT;
`
