export const name = '005-webhook'

export const sql = `
-- events and secrets are JSON; secrets are encrypted. partner is NULL for all partners.
CREATE TABLE webhook (
  id TEXT PRIMARY KEY,
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  partner TEXT,
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
  created_at INTEGER NOT NULL,
  secrets TEXT NOT NULL,
  failing_since INTEGER
) STRICT, WITHOUT ROWID;

-- A row for each event and webhook, which may have been removed since. due_at is when the next attempt is due, a lease
-- ends, or the delivery was settled.
CREATE TABLE webhook_delivery (
  webhook TEXT NOT NULL,
  id TEXT NOT NULL,
  type TEXT NOT NULL,
  partner TEXT,
  created_at INTEGER NOT NULL,
  payload TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  last_status INTEGER,
  last_error TEXT,
  PRIMARY KEY (webhook, id)
) STRICT;

CREATE INDEX webhook_delivery_due ON webhook_delivery (webhook, state, due_at, id);
CREATE INDEX webhook_delivery_newest ON webhook_delivery (webhook, state, created_at, id);
`
