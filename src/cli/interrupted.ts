/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
export function interrupted(): Promise<void> {
  return new Promise((done) => {
    const stop = () => {
      process.off("SIGINT", stop);
      process.off("SIGTERM", stop);
      done();
    };
    process.on("SIGINT", stop);
    process.on("SIGTERM", stop);
  });
}

/** Runs work with a signal that the first SIGINT or SIGTERM aborts. The message of its reason is the name of that
 *  signal. */
export async function interruptible<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const stop = new AbortController();
  const interrupt = (name: string) => stop.abort(new DOMException(name, "AbortError"));
  process.once("SIGINT", interrupt).once("SIGTERM", interrupt);
  try {
    return await work(stop.signal);
  } finally {
    process.off("SIGINT", interrupt).off("SIGTERM", interrupt);
  }
}
