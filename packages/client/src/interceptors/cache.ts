import { ConfigError, META, TenonError } from "@tenon/core";
import { checkOptions, digest, JsonError } from "@tenon/core/internal";
import { clientOf, hasAsked, principalOf } from "../call/marks.ts";
import { isToolResult } from "../call/results.ts";
import { Shelf } from "../catalog/shelf.ts";
import type { ToolCallRequest, ToolResult } from "../types/calls.ts";
import type { AnyInterceptor } from "../types/interceptors.ts";
import { general, noteFactory } from "./general.ts";

/** What is kept, and for how long. */
export interface CacheOptions {
  /** Milliseconds a result is given again. */
  ttlMs: number;
  /** Results kept at once; the one unused longest goes first. Default 1,000. */
  maxEntries?: number;
  /** Characters of JSON of all results kept. Default 16 Mi; one result may have a quarter of it. */
  maxChars?: number;
  /** What a result may depend on besides server, tool, arguments, headers, `_meta` and the runtime's context. */
  key?: (request: ToolCallRequest) => string;
}

/** Parts of `_meta` that name the call, not who makes it. */
const VOLATILE = new Set<string>([META.idempotencyKey, "progressToken", "traceparent", "tracestate", "baggage"]);

/** Everything an answer may depend on. Undefined when it cannot be told: then nothing is shared. */
function placeOf(request: ToolCallRequest, key: string): string | undefined {
  const { server, name, args, runtime } = request;
  const headers = Object.entries(request.headers).map(([header, value]) => [header.toLowerCase(), value]);
  const meta = Object.entries(request.meta).filter(([entry]) => !VOLATILE.has(entry));
  try {
    return digest([
      clientOf(runtime), // another client may be configured with another credential
      principalOf(runtime),
      server,
      name,
      args,
      Object.fromEntries(headers),
      Object.fromEntries(meta),
      runtime.context ?? null,
      key,
    ]);
  } catch (error) {
    if (error instanceof JsonError) return undefined;
    throw error;
  }
}

async function isReadOnly(request: ToolCallRequest): Promise<boolean> {
  // whoever cannot be asked has not said so
  const tool = await request.definition().catch(() => undefined);
  return tool?.annotations.readOnlyHint === true;
}

/** The JSON of a result; undefined where it is nested deeper than can be written: it arrived, and is nothing to keep. */
function written(result: unknown): string | undefined {
  try {
    return JSON.stringify(result);
  } catch {
    return undefined;
  }
}

/** A result of one's own from its JSON, so that nobody can change what others get. */
function revive(json: string): ToolResult {
  const result = JSON.parse(json) as ToolResult; // written from one below
  return Object.freeze({ ...result, content: Object.freeze(result.content), meta: Object.freeze(result.meta) });
}

/** Whether those who waited for the same call would have met the same error. */
function isShared(error: unknown): boolean {
  return error instanceof TenonError && !["cancelled", "closed", "call_settled"].includes(error.code);
}

/**
 * Gives results of tools annotated read-only again while they are fresh, and sends a call that is already under way only
 * once. A result is given again for the same client, server, tool, arguments, headers, `_meta` and runtime context only, so nothing
 * of one caller reaches another; interceptors that add what identifies the caller belong before this one. Errors, results
 * that came after questions, and what other interceptors answered are never kept.
 *
 * @throws ConfigError for numbers that are not positive
 * @example createClient({ servers, interceptors: [cache({ ttlMs: 30_000 })] })
 */
export function cache(options: CacheOptions): AnyInterceptor {
  checkOptions(options, ["ttlMs", "maxEntries", "maxChars", "key"], "cache(options)");
  const { ttlMs, maxEntries = 1_000, maxChars = 16 * 1024 * 1024, key = () => "" } = options;
  if (!(ttlMs > 0 && maxEntries > 0 && maxChars > 0)) {
    throw new ConfigError(
      `cache(options): ttlMs, maxEntries and maxChars must be positive, got ${JSON.stringify(options)}`,
      { code: "invalid_option" },
    );
  }
  /** Results as JSON. */
  const shelf = new Shelf<string>(maxEntries, maxChars);
  /** Calls under way; each ends with the JSON of its result where others may have it. */
  const flights = new Map<string, Promise<string | undefined>>();

  return general(async (request, next) => {
    // what an older task comes to is no answer to these arguments
    const place = request.task === undefined ? placeOf(request, key(request)) : undefined;
    if (place === undefined) return next(request);
    const known = shelf.get(place);
    if (known !== undefined) return revive(known);
    if (!(await isReadOnly(request))) return next(request);
    const flight = flights.get(place);
    if (flight) {
      const landed = await flight.catch((error: unknown) => {
        if (isShared(error)) throw error;
        return undefined;
      });
      if (landed !== undefined) return revive(landed);
      return next(request);
    }
    let land: (json: string | undefined) => void = () => {};
    let crash: (error: unknown) => void = () => {};
    const mine = new Promise<string | undefined>((resolve, reject) => {
      land = resolve;
      crash = reject;
    });
    mine.catch(() => {}); // often nobody waits for it
    flights.set(place, mine);
    try {
      const outcome = await next(request);
      const keep = isToolResult(outcome) && !outcome.isError && !outcome.task && !hasAsked(request.runtime);
      const json = keep ? written(outcome) : undefined;
      // one result must not take the place of all others
      if (json !== undefined && json.length <= maxChars / 4) shelf.set(place, json, json.length, ttlMs);
      land(json);
      return outcome;
    } catch (error) {
      crash(error);
      throw error;
    } finally {
      flights.delete(place);
    }
  });
}

noteFactory(cache, "cache({ ttlMs: 30_000 })");
