export const name = '008-endpoint'

/** Servers of older versions go on: they record no endpoints. */
export const servedFrom = 1

export const sql = `
CREATE TABLE partner_api.endpoint (
  name TEXT COLLATE "C" PRIMARY KEY,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  scope TEXT,
  limits TEXT
);
`
