export type { RedactRules } from "@tenon/core";
export { redactor } from "@tenon/core/internal";
export {
  type AuditIntent,
  type AuditOptions,
  type AuditOutcome,
  audit,
} from "./audit.ts";
export { type CacheOptions, cache } from "./cache.ts";
export { type InjectArgsOptions, injectArgs } from "./inject-args.ts";
export { type CallLine, type LogOptions, log } from "./log.ts";
export { type RateLimitOptions, rateLimit } from "./rate-limit.ts";
export { type RedactOptions, redact } from "./redact.ts";
export { type RetryOptions, retry } from "./retry.ts";
export { type TimeoutOptions, timeout } from "./timeout.ts";
