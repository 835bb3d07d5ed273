export { authorize, ForbiddenError } from "./authorize.ts";
export { type CacheOptions, cache } from "./cache.ts";
export { type LogOptions, log } from "./log.ts";
export { CallerMismatchError, type MatchCallerOptions, matchCaller } from "./match-caller.ts";
export { RateLimitError, type RateLimitOptions, rateLimit } from "./rate-limit.ts";
export { timing } from "./timing.ts";
