/** Notices when somebody who is waited for says nothing any more. */
export interface SilenceWatch {
  /** Somebody is waited for from now on, or nobody is any more. */
  waiting(isWaiting: boolean): void
  /** They said something. */
  heard(): void
  /** Watches no longer. */
  stop(): void
}

/**
 * @param limitMs Milliseconds of silence after which `silent` is called, and again after as many.
 * @param keepsAlive Whether the process is to live on while somebody is waited for.
 */
export function watchSilence(limitMs: number, silent: () => void, keepsAlive: boolean): SilenceWatch {
  let timer: NodeJS.Timeout | undefined
  let isWaiting = false
  let since = 0

  const left = (): number => since + limitMs - performance.now()

  function arm(milliseconds: number): void {
    timer = setTimeout(look, milliseconds)
    if (!keepsAlive || !isWaiting) timer.unref()
  }

  function look(): void {
    timer = undefined
    if (!isWaiting) return
    const milliseconds = left()
    if (milliseconds > 0) arm(milliseconds)
    // When it was this process that stood still, what they said is there to be read first.
    else setImmediate(decide)
  }

  function decide(): void {
    if (!isWaiting || timer !== undefined) return
    if (left() <= 0) {
      since = performance.now()
      silent()
    }
    if (isWaiting) arm(left())
  }

  return {
    waiting(value) {
      if (value === isWaiting) return
      isWaiting = value
      if (value) since = performance.now()
      if (timer === undefined) {
        if (value) arm(limitMs)
      } else if (keepsAlive) {
        if (value) timer.ref()
        else timer.unref()
      }
    },
    heard() {
      since = performance.now()
    },
    stop() {
      isWaiting = false
      clearTimeout(timer)
      timer = undefined
    },
  }
}
