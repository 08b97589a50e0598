export const name = '002-key-usage'

/** Servers of version 1 go on, and count by partner only: keys have no counts of the requests that these serve. */
export const servedFrom = 1

export const sql = `
-- Requests of each key, live and test. usage has those of live keys by partner, which reports add up.
CREATE TABLE partner_api.key_usage (
  key_id TEXT COLLATE "C" NOT NULL,
  day TEXT COLLATE "C" NOT NULL,
  endpoint TEXT COLLATE "C" NOT NULL,
  requests BIGINT NOT NULL,
  errors BIGINT NOT NULL,
  PRIMARY KEY (key_id, day, endpoint)
);

CREATE INDEX key_usage_by_day ON partner_api.key_usage (day);
`
