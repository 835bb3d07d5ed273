import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import { ConfigError, type Era, isRecord } from "@tenon/core";
import type { CacheHints } from "../definition/cache.ts";

/** The lists a server can be asked for, with the result's field and what identifies an item. */
const LISTS = {
  "tools/list": { field: "tools", key: "name" },
  "prompts/list": { field: "prompts", key: "name" },
  "resources/list": { field: "resources", key: "uri" },
  "resources/templates/list": { field: "resourceTemplates", key: "uriTemplate" },
} as const;
export type ListMethod = keyof typeof LISTS;

/** Items of one page when the server's options say nothing. */
const PAGE_SIZE = 500;

/** What a page of a list depends on besides its items. */
interface ListState {
  readonly revision: number;
  readonly personal: boolean;
}

/** Cuts lists into pages and remembers the pages while the list stays as it is. */
export interface Paging {
  /**
   * @param of.revision changes whenever the list does; pages of another revision are forgotten
   * @param of.personal not everybody is shown this list, so nobody may keep it for others
   * @throws ProtocolError -32602 for a cursor that this server did not make, or whose place in the list is gone
   */
  list(method: ListMethod, era: Era, items: readonly object[], of: ListState, cursor: unknown): Result;
  /** Whether a result is one of these pages: unchanged since it was made, so its serialised form may be kept. */
  isPage(result: object): boolean;
}

const refused = (): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, "The cursor is not one of this list; start again without it", {
    reason: "cursor",
  });

/**
 * @param size items of one page
 * @param secret authenticates cursors; servers that share it accept each other's. Default: random, for this process
 */
export function createPaging(hints: CacheHints, size: number = PAGE_SIZE, secret?: string): Paging {
  if (!Number.isSafeInteger(size) || size < 1) {
    throw new ConfigError(`pageSize is ${size}; expected a whole number above 0`, { code: "page_size" });
  }
  let key: Buffer | undefined; // made when a list is first long enough
  const kept = new WeakMap<readonly object[], { revision: number; pages: Map<string, Result> }>();
  const made = new WeakSet<object>();
  const sign = (text: string): Buffer => {
    key ??= secret === undefined ? randomBytes(32) : createHmac("sha256", "tenon.cursor").update(secret).digest();
    return createHmac("sha256", key).update(text).digest().subarray(0, 16);
  };

  /** The place a cursor points to: behind a named item, so that a list that changed in front of it is not repeated. */
  function placeOf(method: ListMethod, items: readonly object[], cursor: unknown): number {
    if (cursor === undefined) return 0;
    const [text, mac] = typeof cursor === "string" ? cursor.split(".") : [];
    const given = Buffer.from(mac ?? "", "base64url");
    if (text === undefined || given.length !== 16 || !timingSafeEqual(given, sign(text))) throw refused();
    // authenticated: written by nextCursor below
    const [of, at, last] = JSON.parse(Buffer.from(text, "base64url").toString()) as [string, number, string];
    if (of !== method) throw refused();
    const named = (item: object | undefined): boolean => isRecord(item) && item[LISTS[method].key] === last;
    const place = named(items[at - 1]) ? at : items.findIndex(named) + 1;
    if (place === 0) throw refused();
    return place;
  }

  function nextCursor(method: ListMethod, at: number, last: object | undefined): string {
    const name = isRecord(last) ? last[LISTS[method].key] : "";
    const text = Buffer.from(JSON.stringify([method, at, name])).toString("base64url");
    return `${text}.${sign(text).toString("base64url")}`;
  }

  return {
    list(method, era, items, { revision, personal }, cursor) {
      const start = placeOf(method, items, cursor);
      let known = kept.get(items);
      if (known?.revision !== revision) {
        known = { revision, pages: new Map() };
        kept.set(items, known);
      }
      const id = `${era} ${method} ${start}`;
      const found = known.pages.get(id);
      if (found) return found;
      const end = start + size;
      const page: Result = Object.freeze({
        [LISTS[method].field]: Object.freeze(items.slice(start, end)),
        ...(end < items.length && { nextCursor: nextCursor(method, end, items[end - 1]) }),
        ...(era === "modern" && hints(method, personal ? { scope: "private" } : undefined)),
      });
      // other starts come from lists that changed between two pages: rare, and not worth the memory
      if (start % size === 0) {
        known.pages.set(id, page);
        made.add(page);
      }
      return page;
    },
    isPage: (result) => made.has(result),
  };
}
