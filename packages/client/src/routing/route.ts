import { isRecord, META } from "@tenon/core";
import type { Sent } from "../connection/endpoint.ts";
import type { RoutingOptions } from "../types/routing.ts";

/**
 * What keeps a request together with others: the thread, else the session of the contract's context, else who it is made for, else
 * the client. Kinds of keys do not meet: a thread named like a session is another key.
 */
export function keyOf(
  server: string,
  { what, route, meta }: Pick<Sent, "what" | "route" | "meta">,
  principal: string,
  own: string,
  choose: RoutingOptions["key"],
): string {
  const { threadId } = route;
  const given = meta[META.context];
  const context = isRecord(given) ? given : undefined;
  if (choose) {
    const chosen = choose({ server, what, ...(threadId !== undefined && { threadId }), ...(context && { context }) });
    if (typeof chosen === "string") return `key ${chosen}`;
  }
  if (threadId !== undefined) return `thread ${threadId}`;
  const session = context?.session_id;
  if (typeof session === "string" && session !== "") return `session ${session}`;
  return principal === "" ? own : `caller ${principal}`;
}
