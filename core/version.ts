/** The version of the wire that the service speaks, and the only one so far. Additions do not make a new one. */
export const VERSION = '2026-11-20'
