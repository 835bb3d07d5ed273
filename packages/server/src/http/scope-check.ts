import type { ProtocolError } from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { type Access, scopeError, type Viewer } from "../definition/access.ts";
import type { Registry } from "../definition/registry.ts";
import { hasScope } from "../definition/scopes.ts";
import type { Service } from "../dispatch/dispatch.ts";
import type { Caller } from "../handler/context.ts";

/** A request whose caller lacks scopes. */
export interface Insufficient {
  /** As the dispatcher would have said it. */
  readonly error: ProtocolError;
  /** Everything the request needs, not only what is lacking. */
  readonly needed: readonly string[];
}

interface Aim {
  /** As errors call it. */
  readonly what: string;
  readonly access: Access | undefined;
}

/** What a server offers that scopes may be needed for. */
export type Offered = Pick<Service, "registry" | "extensions">;

/** The definitions a request is about. */
function aimsOf(
  { registry, extensions }: Offered,
  method: string,
  params: Record<string, unknown>,
  viewer: Viewer,
): Aim[] {
  const tool = (name: unknown): Aim => ({
    what: `Tool ${String(name)}`,
    access: registry.tools.get(String(name))?.access,
  });
  const prompt = (name: unknown): Aim => ({
    what: `Prompt ${String(name)}`,
    access: registry.prompts.get(String(name))?.access,
  });
  const resource = (uri: unknown): Aim => ({
    what: `Resource ${String(uri)}`,
    access: registry.findResource(String(uri), viewer)?.resource.access,
  });
  switch (method) {
    case "tools/call":
      return [tool(params.name)];
    case "prompts/get":
      return [prompt(params.name)];
    case "resources/read":
    case "resources/subscribe":
      return [resource(params.uri)];
    case "completion/complete": {
      const ref = isRecord(params.ref) ? params.ref : {};
      if (ref.type === "ref/prompt") return [prompt(ref.name)];
      // names a template, not what matches it
      return [{ what: `Resource ${String(ref.uri)}`, access: registry.resources.get(String(ref.uri))?.access }];
    }
    case "subscriptions/listen": {
      const filter = isRecord(params.notifications) ? params.notifications : {};
      const uris: unknown[] = Array.isArray(filter.resourceSubscriptions) ? filter.resourceSubscriptions : [];
      return uris.map(resource);
    }
    default:
      return [{ what: `Method ${method}`, access: extensions.access.get(method) }];
  }
}

/**
 * Whether the caller of a request lacks scopes for what it is about: looked at before anything runs, since over HTTP the answer is
 * a status (2026-07-28, scope challenge handling) and a stream's status cannot be taken back. What the caller may not know of is
 * none of its business: the dispatcher answers that it does not exist.
 */
export function findInsufficient(
  offered: Offered,
  method: string,
  params: Record<string, unknown>,
  viewer: Viewer,
): Insufficient | undefined {
  // without a caller there is no token that could be exchanged for a better one
  if (!viewer.caller) return undefined;
  const found: { what: string; lacking: readonly string[] }[] = [];
  const needed = new Set<string>();
  try {
    for (const { what, access } of aimsOf(offered, method, params, viewer)) {
      const lacking = !access || access.open ? [] : access.lacking(viewer);
      if (!access || lacking.length === 0 || !access.exists(viewer)) continue;
      found.push({ what, lacking });
      for (const scope of access.scopes) needed.add(scope);
    }
  } catch {
    return undefined; // an author's rule failed: the dispatcher meets it again and says so
  }
  const [first] = found;
  if (!first) return undefined;
  const lacking = [...new Set(found.flatMap((one) => one.lacking))];
  return { error: scopeError(found.map(({ what }) => what).join(", "), lacking), needed: [...needed] };
}

/** A quick look that errs on the side of yes: whether a request may be one that {@link findInsufficient} refuses. */
export function mayBeInsufficient(
  registry: Registry,
  method: string,
  params: Record<string, unknown>,
  caller: Caller | undefined,
): boolean {
  const lacks = (access: Access | undefined): boolean =>
    access !== undefined && access.scopes.length > 0 && !access.scopes.every((scope) => hasScope(caller, scope));
  if (caller === undefined) return false;
  if (method === "tools/call") return lacks(registry.tools.get(String(params.name))?.access);
  if (method === "prompts/get") return lacks(registry.prompts.get(String(params.name))?.access);
  if (method !== "resources/read") return false;
  for (const { access } of registry.resources.values()) if (lacks(access)) return true;
  return false;
}

/** All scopes that definitions need. */
export function scopesOf({ registry: { tools, prompts, resources }, extensions }: Offered): Set<string> {
  const all = new Set<string>();
  for (const map of [tools, prompts, resources]) {
    for (const { access } of map.values()) for (const scope of access.scopes) all.add(scope);
  }
  for (const { scopes } of extensions.access.values()) for (const scope of scopes) all.add(scope);
  return all;
}

/**
 * What to say of a server without `auth` over HTTP whose definitions need scopes: nobody can have them there.
 * @returns undefined where no definition needs one
 */
export function noAuthWarning(registry: Registry): string | undefined {
  const needing = [registry.tools, registry.prompts, registry.resources].flatMap((map) =>
    [...map].filter(([, { access }]) => access.scopes.length > 0).map(([name]) => name),
  );
  if (needing.length === 0) return undefined;
  const [first] = needing;
  const what = needing.length === 1 ? `${first} needs scopes` : `${first} and ${needing.length - 1} more need scopes`;
  return `${what} and the server has no \`auth\`: over HTTP nobody sees or may use what needs a scope`;
}
