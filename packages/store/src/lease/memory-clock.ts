/** A clock for what only this process keeps: begins with the time of day, and goes on evenly when that is set. Whole milliseconds. */
export function createMemoryClock(): () => number {
  const ahead = Date.now() - performance.now();
  return () => Math.floor(ahead + performance.now());
}
