/** Frozen: a change of the schema is another migration. */
export const name = '003-usage-batches'

export const sql = `
-- The batches of counts that were added already, for as long as somebody may send them again.
CREATE TABLE usage_batch (
  id TEXT PRIMARY KEY,
  added_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX usage_batch_age ON usage_batch (added_at);
`
