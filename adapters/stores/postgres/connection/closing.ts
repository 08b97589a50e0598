/** What tells all that is going on that the store is being closed. */
export interface Closing {
  isClosed(): boolean
  /** Calls back when it is closed. @returns Call it when that is of no interest any more. */
  whenClosed(callback: () => void): () => void
  /** Resolves after that long, or as soon as it is closed. Keeps no process alive. */
  pause(milliseconds: number): Promise<void>
  close(): void
}

/** Any number may wait for it; of an `AbortSignal`, runtimes think that so many are a leak. */
export function createClosing(): Closing {
  const callbacks = new Set<() => void>()
  let isClosed = false

  function whenClosed(callback: () => void): () => void {
    if (isClosed) callback()
    else callbacks.add(callback)
    return () => void callbacks.delete(callback)
  }

  return {
    isClosed: () => isClosed,
    whenClosed,

    pause(milliseconds) {
      return new Promise((resolve) => {
        const end = () => {
          clearTimeout(timer)
          forget()
          resolve()
        }
        const timer = setTimeout(end, milliseconds).unref()
        const forget = whenClosed(() => queueMicrotask(end))
      })
    },

    close() {
      isClosed = true
      for (const callback of [...callbacks]) callback()
    },
  }
}
