/** Databases with odd settings, which no program can change behind a pooler. */
import type { Databases } from './server.ts'

/** What an administrator can set for a database, and what changes the text of results or the meaning of statements. */
const settings: Readonly<Record<string, string>> = {
  DateStyle: 'German, DMY',
  IntervalStyle: 'sql_standard',
  TimeZone: 'Asia/Kathmandu',
  timezone_abbreviations: 'India',
  extra_float_digits: '-15',
  bytea_output: 'escape',
  standard_conforming_strings: 'off',
  escape_string_warning: 'on',
  backslash_quote: 'on',
  search_path: 'nowhere',
  quote_all_identifiers: 'on',
  array_nulls: 'off',
  transform_null_equals: 'on',
  xmlbinary: 'hex',
  xmloption: 'document',
  default_text_search_config: 'pg_catalog.german',
  default_transaction_isolation: 'serializable',
  default_transaction_deferrable: 'on',
  synchronous_commit: 'off',
  row_security: 'off',
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_hashagg: 'off',
  lc_messages: 'C',
  lo_compat_privileges: 'on',
  check_function_bodies: 'off',
}

/** Creates an empty database with the settings, in which text is sorted as in English. */
export async function createOddDatabase(server: Databases): Promise<string> {
  const url = await server.createDatabase()
  const name = new URL(url).pathname.slice(1)
  const { admin, user } = server
  await admin`drop database ${admin(name)}`
  await admin.unsafe(`
    create database ${name} owner ${user} template template0 locale_provider icu icu_locale 'en-US-u-ka-shifted' locale 'C'`)
  for (const [setting, value] of Object.entries(settings)) {
    const values = value.split(', ').map((part) => `'${part}'`)
    await server.admin.unsafe(`alter database ${name} set ${setting} = ${values}`)
  }
  return url
}
