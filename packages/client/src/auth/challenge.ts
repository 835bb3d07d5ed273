import { parseUrl } from "@tenon/core/internal";
import type { Challenge } from "./types.ts";

/** A name, and its value where it has one: a parameter, else the scheme that the next parameters belong to (RFC 9110, section 11.6.1). */
const PART = /[\s,]*([\w!#$%&'*+.^`|~-]+)(?:[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]*)))?/y;

/**
 * Reads what a `WWW-Authenticate` header says of bearer tokens. Part by part, since a description may repeat words of the request,
 * and what looks like a parameter in it is none.
 * @returns empty where it says nothing of them
 */
export function readChallenge(header: string | null): Challenge {
  const params = new Map<string, string>();
  let scheme = "";
  PART.lastIndex = 0;
  for (let part = PART.exec(header ?? ""); part; part = PART.exec(header ?? "")) {
    const [, name = "", quoted, plain] = part;
    const value = quoted?.replaceAll(/\\(.)/g, "$1") ?? plain;
    if (value === undefined) {
      if (scheme !== "") break; // the first challenge of its kind counts
      if (/^(bearer|dpop)$/i.test(name)) scheme = name;
    } else if (scheme !== "" && value !== "") {
      const key = name.toLowerCase();
      if (!params.has(key)) params.set(key, value);
    }
  }
  const resourceMetadataUrl = parseUrl(params.get("resource_metadata") ?? "");
  const [scope, error, description] = ["scope", "error", "error_description"].map((name) => params.get(name));
  return {
    ...(resourceMetadataUrl && { resourceMetadataUrl }),
    ...(scope !== undefined && { scope }),
    ...(error !== undefined && { error }),
    ...(description !== undefined && { description }),
  };
}
