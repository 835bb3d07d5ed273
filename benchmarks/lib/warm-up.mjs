/** Calls that a client makes before its own are timed. */
export const WARM_UP = 1_000;
