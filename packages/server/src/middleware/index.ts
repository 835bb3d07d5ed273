export { authorize, ForbiddenError, type Verdict } from "./authorize.ts";
export { type CacheResultsOptions, cacheResults } from "./cache-results.ts";
export { type LogRequestsOptions, logRequests } from "./log-requests.ts";
export { CallerMismatchError, type MatchCallerOptions, matchCaller } from "./match-caller.ts";
export type { Middleware, Next, RequestTarget, ServerRequest } from "./onion.ts";
export { RateLimitError, type RateLimitOptions, rateLimit } from "./rate-limit.ts";
export { timing } from "./timing.ts";
