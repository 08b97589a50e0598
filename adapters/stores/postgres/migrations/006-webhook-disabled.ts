export const name = '006-webhook-disabled'

/** Servers of older versions go on: pending deliveries of webhooks that they disable are not removed. */
export const servedFrom = 1

export const sql = `
ALTER TABLE partner_api.webhook ADD COLUMN disabled_at BIGINT;
UPDATE partner_api.webhook SET disabled_at = floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint WHERE state = 'disabled';
`
