import { TrustError } from "@tenon/core";
import { hintsOf } from "../catalog/hints.ts";
import type { CatalogTool } from "../types/catalog.ts";
import { EFFECTS } from "./options.ts";
import type { Effect, Grants } from "./types.ts";

/** Whether a text fits a pattern in which `*` stands for any text and `?` for one character; slashes are like any other. */
function fits(pattern: string, text: string): boolean {
  let at = 0;
  let star = -1;
  let resume = 0;
  let i = 0;
  while (i < text.length) {
    if (pattern[at] === "*") {
      star = at++;
      resume = i;
    } else if (at < pattern.length && (pattern[at] === "?" || pattern[at] === text[i])) {
      at++;
      i++;
    } else if (star >= 0) {
      // the last star takes one character more
      at = star + 1;
      i = ++resume;
    } else return false;
  }
  while (pattern[at] === "*") at++;
  return at === pattern.length;
}

const matches = (patterns: readonly string[], text: string): boolean => patterns.some((pattern) => fits(pattern, text));

/** What a tool may do by its own word; what it does not say counts as the protocol's default, the worst case. */
function effectsOf(annotations: CatalogTool["annotations"]): Effect[] {
  const { readOnly, destructive, openWorld } = hintsOf(annotations);
  const does = { readOnly, write: !readOnly, destructive, openWorld };
  return EFFECTS.filter((effect) => does[effect]);
}

/** Why a tool of this name is not granted, or undefined. */
export function toolRefusal(grants: Grants | undefined, tool: string): string | undefined {
  if (!grants?.tools || matches(grants.tools, tool)) return undefined;
  return `grants.tools allows ${grants.tools.join(", ") || "none"}`;
}

/** Why a tool with these annotations is not granted, or undefined. */
export function effectRefusal(grants: Grants | undefined, annotations: CatalogTool["annotations"]): string | undefined {
  const { effects } = grants ?? {};
  if (!effects) return undefined;
  // who may write may read
  const allowed = effects.includes("write") ? [...effects, "readOnly"] : effects;
  const missing = effectsOf(annotations).filter((effect) => !allowed.includes(effect));
  if (missing.length === 0) return undefined;
  return `by its annotations it may be ${missing.join(" and ")}, grants.effects allows ${effects.join(", ") || "none"}`;
}

/** The error for something that is not granted. */
export function notGranted(server: string, what: string, why: string): TrustError {
  return new TrustError(`${what} of server "${server}" is not granted: ${why}. Nothing was sent`, {
    code: "not_granted",
    server,
    maybeExecuted: false,
    data: { what, why },
  });
}

/** Whether an address has a segment `..`, in any spelling: a server that resolves it would leave what a pattern allows. */
function climbs(uri: string): boolean {
  return /(^|[/\\])\.\.([/\\?#]|$)/.test(uri.replace(/%2e/gi, ".").replace(/%2f/gi, "/").replace(/%5c/gi, "\\"));
}

/**
 * The resources among `uris` that may be read. One that climbs out of its folder by `..` never is.
 * @param strict they were asked for by name: one that is not granted is an error instead of left out
 * @throws TrustError `not_granted`
 */
export function grantedResources(
  server: string,
  grants: Grants | undefined,
  uris: readonly string[],
  strict: boolean,
): readonly string[] {
  const patterns = grants?.resources;
  if (!patterns) return uris;
  const granted = uris.filter((uri) => matches(patterns, uri) && !climbs(uri));
  const refused = uris.find((uri) => !granted.includes(uri));
  if (!strict || refused === undefined) return granted;
  throw notGranted(server, `resource ${refused}`, `grants.resources allows ${patterns.join(", ") || "none"}`);
}
