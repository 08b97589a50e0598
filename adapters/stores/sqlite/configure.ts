import { setTimeout } from 'node:timers/promises'
import { BUSY_TIMEOUT_MS, type Database, isBusy } from './database.ts'

/** Sets what a connection needs, and the one thing that a file keeps: write-ahead logging. */
export async function configure(database: Database): Promise<void> {
  await useWriteAheadLog(database)
  database.exec(`
    -- A change is on the disk before it is acknowledged. NORMAL would lose the last ones with the power.
    PRAGMA synchronous = FULL;
    PRAGMA foreign_keys = ON;
    -- The file may come from anywhere: its schema is not to call functions with effects.
    PRAGMA trusted_schema = OFF;
    -- What an import of a million profiles has written to the log is given back when it has been moved to the file.
    PRAGMA journal_size_limit = 67108864;
    -- 256 MiB of pages at most, which only a large import or a large store fills.
    PRAGMA cache_size = -262144;
    -- Nothing of the file is mapped: reading what was mapped and then cut off ends the process, where reading the file
    -- is an error.
    PRAGMA mmap_size = 0;`)
}

/**
 * Readers and a writer then do not wait for each other. Unlike every other statement, the switch fails at once
 * while another process has the file locked, for instance to do the same.
 */
async function useWriteAheadLog(database: Database): Promise<void> {
  const deadline = Date.now() + BUSY_TIMEOUT_MS
  for (;;) {
    try {
      database.exec('PRAGMA journal_mode = WAL')
      return
    } catch (error) {
      if (!isBusy(error) || Date.now() > deadline) throw error
      await setTimeout(5)
    }
  }
}
