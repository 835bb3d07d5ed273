import { isRecord, ProtocolError } from "@tenon/core";
import { jsonSize } from "@tenon/core/internal";
import type { Connection } from "../connection/connection.ts";
import { ANY_RESULT } from "../connection/exchange.ts";
import { type Freshness, freshnessOf } from "./cache.ts";

const MAX_PAGES = 1_000;
/** Elements and bytes of a whole list: far above what servers offer, low enough that no list can fill the memory. */
const MAX_ITEMS = 10_000;
const MAX_BYTES = 32 * 1024 * 1024;
/** Milliseconds for a whole list. */
const TIMEOUT_MS = 60_000;

/** The lists of the protocol, and where each has its elements. */
const LISTS = {
  "tools/list": "tools",
  "prompts/list": "prompts",
  "resources/list": "resources",
  "resources/templates/list": "resourceTemplates",
} as const;

/** A method that lists. */
export type ListMethod = keyof typeof LISTS;

/** A whole list, and for how long it may be kept: the shortest word of all its pages. */
export interface Listing {
  readonly items: readonly unknown[];
  readonly freshness: Freshness;
}

/** The stricter of two pages' words. */
function stricter(a: Freshness | undefined, b: Freshness): Freshness {
  if (!a) return b;
  const ttl = a.ttlMs === undefined || b.ttlMs === undefined ? undefined : Math.min(a.ttlMs, b.ttlMs);
  return {
    ...(ttl !== undefined && { ttlMs: ttl }),
    scope: a.scope === "public" && b.scope === "public" ? "public" : "private",
  };
}

/**
 * Fetches all pages of a list raw, so that one malformed element does not cost the others. The cursor is opaque: an empty
 * one is followed like any other.
 * @throws ProtocolError `pagination_loop` when a cursor comes a second time or the pages do not end, `list_too_large`
 * above 10,000 elements or 32 MiB, `bad_answer` when a page holds no list
 */
export async function fetchAll(connection: Connection, method: ListMethod): Promise<Listing> {
  const key = LISTS[method];
  const { server } = connection;
  const until = Date.now() + TIMEOUT_MS;
  const fail = (code: string, message: string, data: object = {}): never => {
    throw new ProtocolError(message, { code, server, data: { method, ...data } });
  };
  const items: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let freshness: Freshness | undefined;
  let bytes = 0;
  for (let page = 1; ; page++) {
    const exchange: Parameters<Connection["exchange"]>[0] = { rawMethod: method };
    const params = cursor !== undefined && { params: { cursor } };
    const timeout = Math.max(1, until - Date.now());
    await connection.exchange(exchange, () => connection.sdk.request({ method, ...params }, ANY_RESULT, { timeout }));
    const { raw } = exchange;
    const list = raw?.[key];
    if (!raw || !Array.isArray(list))
      return fail("bad_answer", `server "${server}" answered ${method} without a list "${key}"`);
    // a cursor is kept as long as the list is
    bytes += jsonSize([list, raw.nextCursor], MAX_BYTES);
    if (items.length + list.length > MAX_ITEMS || bytes > MAX_BYTES) {
      const limit = `${MAX_ITEMS.toLocaleString("en")} elements or ${MAX_BYTES / 1024 / 1024} MiB`;
      fail("list_too_large", `server "${server}" answers ${method} with more than ${limit}; the list was given up`);
    }
    for (const item of list) items.push(item);
    freshness = stricter(freshness, freshnessOf(raw));
    const next = raw.nextCursor;
    if (typeof next !== "string") break;
    const shown = JSON.stringify(next.length > 100 ? `${next.slice(0, 100)}…` : next);
    if (seen.has(next)) {
      const message = `server "${server}" never ends ${method}: cursor ${shown} came again after ${page} pages`;
      fail("pagination_loop", message, { pages: page });
    }
    if (page >= MAX_PAGES || Date.now() >= until) {
      const message = `server "${server}" did not end ${method} after ${page} pages; the last cursor was ${shown}`;
      fail("pagination_loop", message, { pages: page });
    }
    seen.add(next);
    cursor = next;
  }
  return { items, freshness: freshness ?? {} };
}

/** The text at `key`, or undefined. */
export function textAt(record: Record<string, unknown>, key: string): string | undefined {
  const value = record[key];
  return typeof value === "string" ? value : undefined;
}

/** The object at `key`, or an empty one. */
export function recordAt(record: Record<string, unknown>, key: string): Record<string, unknown> {
  const value = record[key];
  return isRecord(value) ? value : {};
}
