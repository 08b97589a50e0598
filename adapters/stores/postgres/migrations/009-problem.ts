export const name = '009-problem'

/** Servers of older versions go on: they record no problems. */
export const servedFrom = 1

export const sql = `
-- Requests of keys that were answered with a problem, for 7 days.
CREATE TABLE partner_api.problem (
  key_id TEXT COLLATE "C" NOT NULL,
  at BIGINT NOT NULL,
  id TEXT COLLATE "C" NOT NULL,
  partner TEXT COLLATE "C" NOT NULL,
  environment TEXT COLLATE "C" NOT NULL,
  record TEXT NOT NULL,
  PRIMARY KEY (key_id, at, id)
);

CREATE INDEX problem_by_time ON partner_api.problem (at, id);
CREATE INDEX problem_by_partner ON partner_api.problem (partner, environment, at, id);
`
