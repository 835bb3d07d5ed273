import { ConfigError, isRecord } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { ToolCallChanges, ToolCallRequest, ToolDefinition, ToolRuntime } from "../types/calls.ts";

type Parts<Runtime extends ToolRuntime> = Omit<ToolCallRequest<Runtime>, "with" | "definition"> & {
  /** Looks a tool of the request's server up by its wire name. */
  readonly define: (name: string) => Promise<ToolDefinition | undefined>;
};

/** Requests made here; a copy made otherwise has the methods of another one. */
const made = new WeakSet<object>();
const CHANGES = ["name", "args", "headers", "meta", "signal"];

/** Header names compare without case, so a change replaces `authorization` by `Authorization` instead of sending both. */
function mergeHeaders(
  present: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string>>,
): Record<string, string> {
  const replaced = new Set(Object.keys(changes).map((name) => name.toLowerCase()));
  const kept = Object.entries(present).filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...changes };
}

function checkChanges(changes: ToolCallChanges): void {
  checkOptions(changes, CHANGES, "request.with(changes)");
  if (changes.args === undefined || isRecord(changes.args)) return;
  throw new ConfigError(`request.with({ args }) needs an object, got ${JSON.stringify(changes.args)}`, {
    code: "invalid_option",
  });
}

/**
 * A frozen tool call; `with` returns a changed copy and leaves server, runtime and call id as they are. The call lives
 * until its signal aborts, and a copy never longer.
 */
export function createRequest<Runtime extends ToolRuntime>(parts: Parts<Runtime>): ToolCallRequest<Runtime> {
  const { define, ...visible } = parts;
  const request: ToolCallRequest<Runtime> = Object.freeze({
    ...visible,
    args: Object.freeze({ ...parts.args }),
    headers: Object.freeze({ ...parts.headers }),
    meta: Object.freeze({ ...parts.meta }),
    definition: () => define(parts.name),
    with: (changes: ToolCallChanges) => {
      checkChanges(changes);
      return createRequest<Runtime>({
        ...parts,
        name: changes.name ?? parts.name,
        args: changes.args ?? parts.args,
        headers: changes.headers ? mergeHeaders(parts.headers, changes.headers) : parts.headers,
        meta: { ...parts.meta, ...changes.meta },
        signal:
          changes.signal && changes.signal !== parts.signal
            ? AbortSignal.any([parts.signal, changes.signal])
            : parts.signal,
      });
    },
  });
  made.add(request);
  return request;
}

/**
 * What an interceptor handed to `next`, as a request of the same call. A copy made by spreading is taken too.
 * @throws ConfigError `read_only` when it is for another server, runtime or call
 */
export function ofSameCall<Runtime extends ToolRuntime>(
  original: ToolCallRequest<Runtime>,
  given: ToolCallRequest<Runtime>,
): ToolCallRequest<Runtime> {
  if (given === original) return given;
  const known: unknown = given;
  if (!isRecord(known)) {
    throw new ConfigError(`an interceptor called next(${typeof known}); call next(request) or next(request.with(…))`, {
      code: "invalid_option",
      server: original.server,
    });
  }
  for (const key of ["server", "runtime", "callId"] as const) {
    if (given[key] === original[key]) continue;
    throw new ConfigError(
      `an interceptor changed "${key}" of a request, which is read-only; call the other tool with client.callTool()`,
      { code: "read_only", server: original.server },
    );
  }
  if (made.has(given)) return given;
  const { name, args, headers, meta, signal } = given;
  return original.with({ name, args, headers, meta, signal });
}
