export const name = '005-quota-term'

/** Servers of earlier versions go on: their leases stay taken when a quota changes. */
export const servedFrom = 1

export const sql = `
-- The quota under which replicas lease, since when, and what they hold: leased and not reported as used.
ALTER TABLE partner_api.quota_window ADD COLUMN quota BIGINT NOT NULL DEFAULT 0;
ALTER TABLE partner_api.quota_window ADD COLUMN term BIGINT NOT NULL DEFAULT 0;
ALTER TABLE partner_api.quota_window ADD COLUMN held BIGINT NOT NULL DEFAULT 0;
`
