import { ConfigError, isRecord } from "@tenon/core";
import type { Caller } from "../handler/context.ts";

/** What a scope may look like (RFC 6749, section 3.3): one word that fits between the quotes of a header. */
const SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Whether a text is one scope. */
export const isScope = (text: unknown): text is string => typeof text === "string" && SCOPE.test(text);

/** @throws ConfigError `code: "scope"` for what is no list of scopes */
export function checkScopes(scopes: readonly string[], where: string): void {
  const given: unknown = scopes;
  if (!Array.isArray(given)) {
    throw new ConfigError(`${where} must be a list of scopes, such as ["orders:read"]; got ${JSON.stringify(given)}`, {
      code: "scope",
    });
  }
  const wrong = given.find((scope) => !isScope(scope));
  if (wrong === undefined) return;
  throw new ConfigError(
    `${where}: ${JSON.stringify(wrong)} is no scope; write one word of printable ASCII without quotes and backslashes (RFC 6749)`,
    { code: "scope" },
  );
}

/** Whether one granted scope is, or covers, another: `orders:*` covers `orders:refund` and `orders:refund:partial`. */
export const covers = (granted: string, needed: string): boolean =>
  granted === needed || (granted.endsWith(":*") && needed.startsWith(granted.slice(0, -1)));

/**
 * Whether a caller has a scope: granted by its token, covered by a granted `orders:*`, or implied through the server's
 * `scopeHierarchy`. Nobody has none.
 *
 * @example server.use(authorize(({ name, caller }) => name !== "pay" || hasScope(caller, "pay")))
 */
export function hasScope(caller: Pick<Caller, "scopes"> | undefined, scope: string): boolean {
  if (!caller) return false;
  const { scopes } = caller;
  return scopes.includes(scope) || scopes.some((granted) => covers(granted, scope));
}

/** What each scope includes besides itself: `{ "orders:refund": ["orders:read"] }`. */
export type ScopeHierarchy = Readonly<Record<string, readonly string[]>>;

/** Adds to granted scopes what they imply. */
export interface Scopes {
  /** The granted scopes and everything they imply; the same list where nothing is added. */
  implied(granted: readonly string[]): readonly string[];
  /** Every scope the hierarchy names. */
  readonly named: readonly string[];
}

/**
 * @param hierarchy may have cycles: scopes that imply each other are the same
 * @throws ConfigError `code: "scope_hierarchy"` or `"scope"`
 */
export function createScopes(hierarchy: ScopeHierarchy = {}): Scopes {
  if (!isRecord(hierarchy)) {
    throw new ConfigError(
      'createServer: scopeHierarchy must be an object such as { "orders:refund": ["orders:read"] }',
      { code: "scope_hierarchy" },
    );
  }
  const rules = Object.entries(hierarchy);
  for (const [scope, implied] of rules) {
    checkScopes([scope], "scopeHierarchy");
    checkScopes(implied, `scopeHierarchy["${scope}"]`);
  }
  return {
    named: [...new Set(rules.flatMap(([scope, implied]) => [scope, ...implied]))],
    implied(granted) {
      if (rules.length === 0) return granted;
      const all = new Set(granted);
      const open = new Set(rules);
      // each rule is taken at most once, so this ends whatever the hierarchy looks like
      for (let before = -1; before !== all.size; ) {
        before = all.size;
        for (const rule of open) {
          const [scope, implied] = rule;
          if (![...all].some((held) => covers(held, scope))) continue;
          for (const one of implied) all.add(one);
          open.delete(rule);
        }
      }
      return all.size === new Set(granted).size ? granted : [...all];
    },
  };
}
