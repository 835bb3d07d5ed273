import { ConfigError, isRecord } from "@tenon/core";
import type { RequestHeaders } from "./types.ts";

/** Names of servers; none stands for all. */
export type Names = readonly string[];
/** The two ways to name servers: one after the other, or as a list before options. */
export type NamesOrOptions = string[] | [servers: Names, options?: RequestHeaders];

/** @throws ConfigError `invalid_option`, `unsupported_option` */
export function namesOf(args: NamesOrOptions): { servers: Names; options: RequestHeaders } {
  const [first, options] = args;
  if (!Array.isArray(first)) return { servers: args as string[], options: {} }; // without a list, all are names
  if (options === undefined) return { servers: first, options: {} };
  if (!isRecord(options))
    throw new ConfigError("the options after a list of servers must be an object", { code: "invalid_option" });
  return { servers: first, options: checkHeaders(options) };
}

/** What a request may say of its own. @throws ConfigError `unsupported_option` */
export function checkHeaders(options: RequestHeaders & { readonly authProvider?: unknown }): RequestHeaders {
  if (options.authProvider === undefined) return options;
  throw new ConfigError(
    'the options of one request do not support "authProvider": give the server a transport with the provider, ' +
      "or the headers of this request",
    { code: "unsupported_option", data: { key: "authProvider" } },
  );
}
