import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AuthError, ConfigError, isLoopback, isRecord, type Json, TenonError } from "@tenon/core";
import { checkOptions, digest, toJson } from "@tenon/core/internal";
import type { OutcomeStore } from "@tenon/store";
import type { Caller } from "../handler/context.ts";

/** The pages one call sent its person to. */
export interface Pages {
  /** Opens the page's record, or finds it, and returns the address to send the person to. @throws ConfigError `code: "url"` */
  open(key: string, url: string | URL | ((id: string) => string | URL)): Promise<{ id: string; href: string }>;
  /** What the page reported; waits a while for it. */
  completed(key: string): Promise<{ data: Json } | undefined>;
}

/** How the page reports that the person has done what they came for. */
export interface PageResult {
  /** Who did it, by the page's own sign-in: must be the subject of the caller that was asked. */
  subject?: string;
  /** Who vouches for the subject, as `ctx.caller.issuer` says it; needed where the server takes tokens of several issuers. */
  issuer?: string;
  /** What the handler gets as the answer's `data`: JSON, no secrets. Default null. */
  data?: unknown;
}

interface PageRecord {
  readonly owner: string | null;
  /** Undefined where nobody vouched for the subject. */
  readonly issuer?: string;
  readonly done?: { readonly data: Json };
}

const POLL_MS = 250;
const recordKey = (id: string): string => `page:${id}`;
const ownerOf = (subject: string | undefined): string | null =>
  subject === undefined ? null : digest(["page", subject]);

async function read(store: OutcomeStore, id: string): Promise<PageRecord | undefined> {
  const text = await store.getBlob(recordKey(id));
  if (text === undefined) return undefined;
  const record: unknown = JSON.parse(text);
  return isRecord(record) ? (record as unknown as PageRecord) : undefined; // only this file writes them
}

/**
 * The address as it goes out.
 * @throws ConfigError `code: "url"` unless it is https, or http on loopback, without user and password
 */
function checkPageUrl(given: string | URL): string {
  const url = URL.canParse(String(given)) ? new URL(String(given)) : undefined;
  const refuse = (why: string): never => {
    // a query may hold what nobody should read in a log
    const shown = url ? `${url.protocol}//${url.host}${url.pathname}` : "the given text";
    throw new ConfigError(`ctx.elicitUrl: ${shown} ${why}; give an https address without credentials`, { code: "url" });
  };
  if (!url) return refuse("is not an absolute URL");
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback(url.hostname))) {
    return refuse("is neither https nor http on this machine");
  }
  if (url.username !== "" || url.password !== "") return refuse("carries a user or a password");
  return url.href;
}

/**
 * The pages of one call.
 * @param options.ids elicitation ids by question key: part of the call's journal
 * @param options.waitMs how long an answer waits for the page before it is asked for again
 * @param options.onCompleted tells a client that is waiting
 */
export function createPages(options: {
  store: OutcomeStore;
  ids: Map<string, string>;
  caller: Caller | undefined;
  ttlMs: number;
  waitMs: number;
  signal: AbortSignal;
  onCompleted(id: string): Promise<void>;
}): Pages {
  const { store, ids } = options;
  return {
    async open(key, url) {
      const id = ids.get(key) ?? randomUUID();
      const href = checkPageUrl(typeof url === "function" ? url(id) : url);
      ids.set(key, id);
      if ((await read(store, id)) === undefined) {
        const { caller } = options;
        const issuer = caller?.issuer;
        const record: PageRecord = { owner: ownerOf(caller?.subject), ...(issuer !== undefined && { issuer }) };
        await store.putBlob(recordKey(id), JSON.stringify(record), options.ttlMs);
      }
      return { id, href };
    },
    async completed(key) {
      const id = ids.get(key);
      if (id === undefined) return undefined;
      const until = performance.now() + options.waitMs;
      for (;;) {
        const record = await read(store, id);
        if (record?.done) {
          await options.onCompleted(id);
          return record.done;
        }
        if (!record || performance.now() >= until) return undefined;
        await sleep(POLL_MS, undefined, { signal: options.signal });
      }
    },
  };
}

/**
 * Records that the person has done on the page what `ctx.elicitUrl` sent them for.
 * @param keeping.issuers whose tokens the server takes: of one, the subject alone says who somebody is
 * @throws TenonError `code: "unknown_elicitation"` for an id that was never given out or has expired
 * @throws AuthError `code: "foreign_elicitation"` when somebody else than the person who was asked did it
 */
export async function completePage(
  { store, ttlMs, issuers }: { store: OutcomeStore; ttlMs: number; issuers: readonly string[] },
  id: string,
  options: PageResult,
): Promise<void> {
  checkOptions(options, ["subject", "issuer", "data"], "completeElicitation(id, result)");
  const record = await read(store, id);
  if (!record) {
    throw new TenonError(`No question waits for the elicitation "${id}": it was never asked, or has expired`, {
      code: "unknown_elicitation",
      data: { id },
    });
  }
  const { issuer = issuers.length > 1 ? undefined : record.issuer } = options;
  if (record.owner !== null && (record.owner !== ownerOf(options.subject) || record.issuer !== issuer)) {
    throw new AuthError(
      "The elicitation belongs to another person: `subject` must be who signed in on the page, and the caller who was asked; " +
        "`issuer` says who vouches for it, where several do",
      { code: "foreign_elicitation", data: { id } },
    );
  }
  if (record.done) return; // a page may report twice, the first report counts
  const done: PageRecord = { ...record, done: { data: toJson(options.data ?? null, "data") } };
  await store.putBlob(recordKey(id), JSON.stringify(done), ttlMs);
}
