import { isRecord, META } from "@tenon/core";
import type { Sent } from "../connection/endpoint.ts";
import type { RoutingOptions } from "../types/routing.ts";

/**
 * What keeps a request together with others: the thread, else the session of the contract's context, else who it is made for, else
 * the client. Kinds of keys do not meet: a thread named like a session is another key.
 */
export function keyOf(
  server: string,
  { what, route, meta, contextFields }: Pick<Sent, "what" | "route" | "meta" | "contextFields">,
  principal: string,
  own: string,
  choose: RoutingOptions["key"],
): string {
  const { threadId, sessionId } = route;
  const brought = meta[META.context];
  const context = isRecord(brought) ? { ...contextFields, ...brought } : contextFields;
  if (choose) {
    const chosen = choose({ server, what, ...(threadId !== undefined && { threadId }), ...(context && { context }) });
    if (typeof chosen === "string") return `key ${chosen}`;
  }
  if (threadId !== undefined) return `thread ${threadId}`;
  const session = sessionId ?? context?.session_id;
  if (typeof session === "string" && session !== "") return `session ${session}`;
  return principal === "" ? own : `caller ${principal}`;
}
