/** The server's clock, milliseconds since the epoch: the one clock that all replicas have. */
export const SERVER_NOW = 'floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint'
