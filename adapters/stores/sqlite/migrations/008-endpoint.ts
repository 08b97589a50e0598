export const name = '008-endpoint'

export const sql = `
CREATE TABLE endpoint (
  name TEXT PRIMARY KEY,
  method TEXT NOT NULL,
  path TEXT NOT NULL,
  scope TEXT,
  limits TEXT
) STRICT;
`
