import { isRecord, ProtocolError } from "@tenon/core";
import type { Connection } from "./connection/connection.ts";

const MAX_PAGES = 1_000;
const TIMEOUT_MS = 60_000;

/** A whole list, and for how long it may be kept. */
export interface Listing {
  readonly items: readonly unknown[];
  /** Milliseconds; absent on the older revision. */
  readonly ttlMs?: number;
}

/**
 * Fetches all pages of a list raw, so that one malformed element does not cost the others. The cursor is opaque: an empty
 * one is followed like any other.
 * @throws ProtocolError `pagination_loop` when a cursor comes a second time, `bad_answer` when a page holds no list
 */
export async function fetchAll(
  connection: Connection,
  method: "tools/list" | "resources/list" | "prompts/list",
): Promise<Listing> {
  const key = method.slice(0, method.indexOf("/"));
  const { server } = connection;
  const items: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  let ttlMs: number | undefined;
  for (let page = 1; ; page++) {
    const exchange: Parameters<Connection["exchange"]>[0] = { rawMethod: method };
    await connection.exchange(exchange, () =>
      connection.sdk.request({ method, ...(cursor !== undefined && { params: { cursor } }) }, { timeout: TIMEOUT_MS }),
    );
    const list = exchange.raw?.[key];
    if (!exchange.raw || !Array.isArray(list)) {
      throw new ProtocolError(`server "${server}" answered ${method} without a list "${key}"`, {
        code: "bad_answer",
        server,
      });
    }
    items.push(...list);
    const ttl = exchange.raw.ttlMs;
    if (typeof ttl === "number") ttlMs = Math.min(ttlMs ?? ttl, ttl);
    const next = exchange.raw.nextCursor;
    if (typeof next !== "string") break;
    if (seen.has(next) || page >= MAX_PAGES) {
      throw new ProtocolError(
        `server "${server}" never ends ${method}: cursor ${JSON.stringify(next)} came again after ${page} pages`,
        { code: "pagination_loop", server, data: { method, pages: page } },
      );
    }
    seen.add(next);
    cursor = next;
  }
  return { items, ...(ttlMs !== undefined && { ttlMs }) };
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
