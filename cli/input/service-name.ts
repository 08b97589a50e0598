import { InvalidArgumentError } from 'commander'
import { nameService } from '../../core/service-names.ts'

/** A service's own name, as it stands in paths and headers. @throws {InvalidArgumentError} */
export function serviceName(text: string): string {
  try {
    return nameService(text).name
  } catch {
    throw new InvalidArgumentError('It is of lower-case letters, digits and -, a letter first.')
  }
}
