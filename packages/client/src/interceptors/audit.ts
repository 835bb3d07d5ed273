import {
  ConfigError,
  ExecutionError,
  META,
  messageOf,
  type RedactRules,
  type SerializedError,
  serializeError,
} from "@tenon/core";
import { checkOptions, digest, redactor, traceIdOf } from "@tenon/core/internal";
import { isSuspension } from "../call/marks.ts";
import type { ToolCallRequest, ToolRuntime } from "../types/calls.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { endedAs, general, noteFactory } from "./general.ts";

interface EntryBase {
  /** Links an intent and its outcome. */
  readonly callId: string;
  /** 1, then one more for each further sending of the same call, where something repeats it. */
  readonly pass: number;
  /** ISO 8601. */
  readonly at: string;
  readonly server: string;
  readonly tool: string;
  /** The trace the call belongs to (W3C), where there is one: what other programs did for it can be found. */
  readonly traceId?: string;
}

/** Written before a call leaves. Plain JSON. */
export interface AuditIntent extends EntryBase {
  readonly kind: "intent";
  /** SHA-256 of the arguments' canonical JSON, base64url. */
  readonly argsDigest: string;
  /** The arguments without what `redact` takes out; only with that option. */
  readonly args?: unknown;
  /** What `actor` says. */
  readonly actor?: unknown;
  /** What a person decided about the call, where one was asked: `decision`, `decidedBy`, `askedAt`, `decidedAt`. */
  readonly approval?: ToolRuntime["approval"];
  readonly threadId?: string;
  readonly toolCallId?: string;
  /** Names the effect for the server, where the call has such a key: what the server writes down of it can be found. */
  readonly idempotencyKey?: string;
}

/** Written when the call is over, however it ended. Plain JSON. */
export interface AuditOutcome extends EntryBase {
  readonly kind: "outcome";
  /** Milliseconds since the intent. */
  readonly ms: number;
  /** As in `log`: `ok`, `tool_error` (result with `isError`), `answered`, `suspended` (comes again), `error` (thrown). */
  readonly outcome: "ok" | "tool_error" | "answered" | "suspended" | "error";
  readonly error?: SerializedError;
}

/**
 * A function that gets both kinds of entries, or one for each; `stores.audit.sink()` of `@tenon/store` is one. What they return
 * is awaited.
 */
export type AuditSink =
  | ((entry: AuditIntent | AuditOutcome) => unknown)
  | { intent(entry: AuditIntent): unknown; outcome(entry: AuditOutcome): unknown };

/** How calls are written down. */
export interface AuditOptions {
  /** Gets the entries and writes them down; what it returns is awaited. */
  sink: AuditSink;
  /** Whether a call whose intent cannot be written is refused (default) or sent all the same. */
  failClosed?: boolean;
  /** Adds the arguments, and cleans them and the messages of errors by these rules. */
  redact?: RedactRules;
  /** On whose behalf, as JSON; from `request.runtime` as a rule. */
  actor?: (request: ToolCallRequest) => unknown;
  /** Milliseconds the sink may take for one entry. Default 5,000. */
  timeoutMs?: number;
  /** An entry could not be written. Default: error and entry on stderr, so that it is not lost. */
  onSinkError?: (error: unknown, entry: AuditIntent | AuditOutcome) => void;
}

function toStderr(error: unknown, entry: AuditIntent | AuditOutcome): void {
  const reason = messageOf(error);
  process.stderr.write(`tenon: an audit entry could not be written (${reason}): ${JSON.stringify(entry)}\n`);
}

function sinkOf(sink: AuditSink): (entry: AuditIntent | AuditOutcome) => unknown {
  if (typeof sink === "function") return sink;
  if (typeof sink?.intent === "function" && typeof sink.outcome === "function") {
    return (entry) => (entry.kind === "intent" ? sink.intent(entry) : sink.outcome(entry));
  }
  throw new ConfigError("audit(options).sink must be a function or { intent, outcome }, both functions", {
    code: "invalid_option",
  });
}

async function within(ms: number, work: () => unknown): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`the audit sink took longer than ${ms} ms`)), ms);
  });
  try {
    await Promise.race([(async () => work())(), late]);
  } finally {
    clearTimeout(timer);
  }
}

/** The key of the call's effect, where it has one. */
function keyOf({ meta }: ToolCallRequest): { idempotencyKey?: string } {
  const key = meta[META.idempotencyKey];
  return typeof key === "string" ? { idempotencyKey: key } : {};
}

function refused({ server, name }: ToolCallRequest, cause: unknown): ExecutionError {
  return new ExecutionError(
    `tools/call ${name} on server "${server}" was not sent, because its audit entry could not be written. ` +
      "Repair the audit sink; failClosed: false sends calls without it",
    { code: "audit_failed", server, retryable: true, maybeExecuted: false, cause },
  );
}

/**
 * Writes an entry before a call leaves and one when it is over: results, results with `isError`, errors and exceptions
 * alike. The outcome itself passes as it is, with its status, blocks and artifact. A call whose intent cannot be written
 * is refused; an outcome that cannot be written is reported with the entry, since the call has run.
 *
 * @throws ConfigError for options nobody understands; the interceptor throws ExecutionError `audit_failed`
 * @example createClient({ servers, interceptors: [audit({ sink: (entry) => appendFile("audit.jsonl", JSON.stringify(entry) + "\n") })] })
 */
export function audit(options: AuditOptions): AnyInterceptor {
  const known = ["sink", "failClosed", "redact", "actor", "timeoutMs", "onSinkError"];
  checkOptions(options, known, "audit(options)");
  const { failClosed = true, redact, actor, timeoutMs = 5_000, onSinkError = toStderr } = options;
  const sink = sinkOf(options.sink);
  // a timer above that ends at once
  if (!(timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new ConfigError(`audit(options).timeoutMs must be a positive number of milliseconds, got ${timeoutMs}`, {
      code: "invalid_option",
    });
  }
  const clean = redactor(redact);
  /** Sendings so far, by the call's runtime: an object of each call's own, which no interceptor can replace. */
  const passes = new WeakMap<object, number>();
  const report: typeof onSinkError = (error, entry) => {
    try {
      onSinkError(error, entry);
    } catch (second) {
      toStderr(second, entry);
    }
  };

  return general(async (request, next) => {
    const { server, name: tool, callId, runtime } = request;
    const pass = (passes.get(runtime) ?? 0) + 1;
    passes.set(runtime, pass);
    const traceId = traceIdOf(request.meta);
    const base = { callId, pass, server, tool, ...(traceId !== undefined && { traceId }) };
    let started = performance.now();
    const finish = async (outcome: AuditOutcome["outcome"], thrown?: { error: unknown }): Promise<void> => {
      const entry: AuditOutcome = Object.freeze({
        kind: "outcome",
        ...base,
        at: new Date().toISOString(),
        ms: Math.round(performance.now() - started),
        outcome,
        ...(thrown && { error: clean(serializeError(thrown.error)) }),
      });
      await within(timeoutMs, () => sink(entry)).catch((error: unknown) => report(error, entry));
    };
    let intent: AuditIntent | undefined;
    let writing: Promise<unknown> | undefined;
    try {
      const by = actor?.(request);
      intent = Object.freeze({
        kind: "intent",
        ...base,
        at: new Date().toISOString(),
        argsDigest: digest(request.args),
        ...(redact && { args: clean(request.args) }),
        ...(by !== undefined && { actor: by }),
        ...(runtime.approval && { approval: runtime.approval }),
        ...(runtime.threadId !== undefined && { threadId: runtime.threadId }),
        ...(runtime.toolCallId !== undefined && { toolCallId: runtime.toolCallId }),
        ...keyOf(request),
      });
      const entry = intent;
      await within(timeoutMs, () => {
        writing = (async () => sink(entry))();
        return writing;
      });
    } catch (error) {
      if (intent) report(error, intent);
      if (failClosed) {
        const refusal = refused(request, error);
        // an intent that comes late after all is of a call that was never sent
        writing?.then(
          () => finish("error", { error: refusal }),
          () => undefined,
        );
        throw refusal;
      }
    }
    started = performance.now();
    try {
      const outcome = await next(request);
      await finish(endedAs(outcome));
      return outcome;
    } catch (error) {
      if (isSuspension(error)) await finish("suspended");
      else await finish("error", { error });
      throw error;
    }
  });
}

noteFactory(audit, "audit({ sink })");
