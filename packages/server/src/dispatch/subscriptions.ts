import { isRecord } from "@tenon/core";
import type { Viewer } from "../definition/access.ts";
import type { Service } from "./dispatch.ts";

/**
 * Whether changes of a resource are none of a viewer's business: there is one at the address, and it is hidden from the viewer.
 * A rule that fails hides it.
 */
export function hidesFrom({ registry, log }: Pick<Service, "registry" | "log">, uri: string, viewer: Viewer): boolean {
  try {
    return registry.hides(uri, viewer);
  } catch (error) {
    log("error", "a rule about who sees a resource failed", { error });
    return true;
  }
}

/**
 * A `subscriptions/listen` request without the resources that are hidden from its viewer: it is acknowledged without them, as
 * the revision has it for what a server does not honour, and hears nothing of them.
 * @param body the message; returned as it is when nothing is left out, or it is no such request
 */
export function withoutHidden(service: Pick<Service, "registry" | "log">, body: unknown, viewer: Viewer): unknown {
  const params = isRecord(body) && isRecord(body.params) ? body.params : {};
  const filter = isRecord(params.notifications) ? params.notifications : {};
  const { resourceSubscriptions: asked } = filter;
  if (!isRecord(body) || !Array.isArray(asked)) return body;
  const left = asked.filter((uri: unknown) => typeof uri !== "string" || !hidesFrom(service, uri, viewer));
  if (left.length === asked.length) return body;
  return { ...body, params: { ...params, notifications: { ...filter, resourceSubscriptions: left } } };
}

/**
 * Counts what each caller holds open.
 * @param most of one caller
 * @returns takes one more for a caller, and returns how to give it back; undefined when the caller has all it may
 */
export function createShares(most: number): (who: string) => (() => void) | undefined {
  const held = new Map<string, number>();
  return (who) => {
    const count = held.get(who) ?? 0;
    if (count >= most) return undefined;
    held.set(who, count + 1);
    let mine = true;
    return () => {
      if (!mine) return;
      mine = false;
      const left = (held.get(who) ?? 1) - 1;
      if (left > 0) held.set(who, left);
      else held.delete(who);
    };
  };
}
