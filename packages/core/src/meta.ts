/** Keys of `_meta` that Tenon reads and writes. The prefix is reserved by reverse DNS as the revision asks. */
export const META = {
  /** Who asks, in which session and trace: the context of a request, as its server's contract declares it. */
  context: "dev.tenon/context",
  /** Version of the context contract that a client asks for, such as `"0.4.2"`. */
  contract: "dev.tenon/contract",
  /** Parts of that version which the client can do without: `["expires_at"]`. */
  contractWithout: "dev.tenon/contract-without",
  /** A string that names one intended effect; a server that honours it runs the effect once. */
  idempotencyKey: "dev.tenon/idempotency-key",
  /** True on an answer that repeats a recorded outcome instead of running the tool again. */
  replayed: "dev.tenon/replayed",
  /** On a definition: what to use instead of it. */
  deprecated: "dev.tenon/deprecated",
  /** On a result: milliseconds the server took. */
  durationMs: "dev.tenon/duration-ms",
  /** On a tool: `"optional"` or `"required"`, whether its calls become tasks. */
  task: "dev.tenon/task",
  /** On a task: `{ progress, total?, message? }`, how far it is. */
  progress: "dev.tenon/progress",
} as const;

/** Protocol revisions by era. */
export const MODERN_REVISION = "2026-07-28";
export const LEGACY_REVISION = "2025-11-25";

/** `modern` is 2026-07-28 (stateless); `legacy` is 2025-11-25 and older (sessions). */
export type Era = "modern" | "legacy";
