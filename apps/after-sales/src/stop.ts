/**
 * Aborts on Ctrl-C, on a polite request to stop, and when the terminal goes away. `again` is for a second Ctrl-C, whoever
 * noticed it: it ends the program at once.
 */
export function stopOnSignals(): AbortController & { again(): void } {
  const stop = new AbortController();
  const again = (): void => {
    if (stop.signal.aborted) process.exit(130);
    stop.abort();
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, again);
  return Object.assign(stop, { again });
}
