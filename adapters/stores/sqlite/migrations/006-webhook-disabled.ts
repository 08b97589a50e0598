export const name = '006-webhook-disabled'

export const sql = `
ALTER TABLE webhook ADD COLUMN disabled_at INTEGER;
UPDATE webhook SET disabled_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE state = 'disabled';
`
