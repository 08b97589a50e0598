export const name = '004-webhook'

/** Servers of older versions go on: the signups and changes that they make have no events. */
export const servedFrom = 1

export const sql = `
-- events and secrets are JSON; secrets are encrypted. partner is NULL for all partners.
CREATE TABLE partner_api.webhook (
  id TEXT COLLATE "C" PRIMARY KEY,
  url TEXT NOT NULL,
  events TEXT NOT NULL,
  partner TEXT COLLATE "C",
  state TEXT NOT NULL CHECK (state IN ('active', 'disabled')),
  created_at BIGINT NOT NULL,
  secrets TEXT NOT NULL,
  failing_since BIGINT
);

-- A row for each event and webhook, which may have been removed since: a foreign key would have signups lock it. due_at is
-- when the next attempt is due, a lease ends, or the delivery was settled.
CREATE TABLE partner_api.webhook_delivery (
  webhook TEXT COLLATE "C" NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  type TEXT NOT NULL,
  partner TEXT COLLATE "C",
  created_at BIGINT NOT NULL,
  payload TEXT NOT NULL,
  state TEXT COLLATE "C" NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts INTEGER NOT NULL,
  due_at BIGINT NOT NULL,
  last_status INTEGER,
  last_error TEXT,
  PRIMARY KEY (webhook, id)
);

CREATE INDEX webhook_delivery_due ON partner_api.webhook_delivery (webhook, state, due_at, id);
CREATE INDEX webhook_delivery_newest ON partner_api.webhook_delivery (webhook, state, created_at, id);
`
