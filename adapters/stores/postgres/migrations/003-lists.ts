/** Frozen: a change of the schema is another migration. */
export const name = '003-lists'

export const servedFrom = 1

export const sql = `
-- Lists are read in pages, and no page sorts or skips rows. Indexing an expression keeps the planner from scanning one
-- list's index for another list: all keys for the keys of a partner, or all entries for the entries of a partner.
CREATE INDEX partner_key_oldest ON partner_api.partner_key ((created_at + 0), id);
CREATE INDEX audit_by_partner ON partner_api.audit (partner, (sequence + 0));
`
