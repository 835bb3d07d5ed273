import type { ToolCallChanges, ToolCallRequest, ToolRuntime } from "./types.ts";

type Parts<Runtime extends ToolRuntime> = Omit<ToolCallRequest<Runtime>, "with">;

/** Header names compare without case, so a change replaces `authorization` by `Authorization` instead of sending both. */
function mergeHeaders(
  present: Readonly<Record<string, string>>,
  changes: Readonly<Record<string, string>>,
): Record<string, string> {
  const replaced = new Set(Object.keys(changes).map((name) => name.toLowerCase()));
  const kept = Object.entries(present).filter(([name]) => !replaced.has(name.toLowerCase()));
  return { ...Object.fromEntries(kept), ...changes };
}

/** A frozen tool call; `with` returns a changed copy and leaves server, runtime and signal as they are. */
export function createRequest<Runtime extends ToolRuntime>(parts: Parts<Runtime>): ToolCallRequest<Runtime> {
  return Object.freeze({
    ...parts,
    args: Object.freeze({ ...parts.args }),
    headers: Object.freeze({ ...parts.headers }),
    meta: Object.freeze({ ...parts.meta }),
    with: (changes: ToolCallChanges) =>
      createRequest<Runtime>({
        ...parts,
        name: changes.name ?? parts.name,
        args: changes.args ?? parts.args,
        headers: changes.headers ? mergeHeaders(parts.headers, changes.headers) : parts.headers,
        meta: { ...parts.meta, ...changes.meta },
      }),
  });
}
