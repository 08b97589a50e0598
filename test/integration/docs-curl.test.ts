/** Runs the commands of the docs' pages that call curl. */
import { pagesWithCommands, testCommands } from './page-commands.ts'

for (const page of pagesWithCommands({ curl: true })) testCommands(page)
