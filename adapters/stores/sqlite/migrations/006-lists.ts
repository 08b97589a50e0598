/** Frozen: a change of the schema is another migration. */
export const name = '006-lists'

export const sql = `
-- Lists are read in pages, and no page sorts or skips rows. Each index ends with the primary key, which SQLite adds.
CREATE INDEX partner_key_oldest ON partner_key (created_at);
CREATE INDEX audit_by_partner ON audit (partner);
`
