import type { Prompt, Resource, ResourceTemplateType, Tool } from "@modelcontextprotocol/server";
import { ConfigError, type Era } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import type { Middleware } from "../middleware/onion.ts";
import { type Access, isListed, oncePerRequest, type Viewer, type VisibleTags } from "./access.ts";
import type { ReadingRules } from "./arguments.ts";
import {
  type CompiledPrompt,
  type CompiledResource,
  type CompiledTool,
  checkName,
  compilePrompt,
  compileResource,
  compileTool,
  type Mounted,
  matcher,
} from "./compile.ts";
import type { Completers } from "./completion.ts";
import type { DefinitionKind, PromptOptions, ResourceOptions, Run, ToolOptions } from "./definitions.ts";

export type { CompiledPrompt, CompiledResource, CompiledTool } from "./compile.ts";

/** What belongs to one server's definitions, and goes with them when that server is mounted in another. */
export interface Home {
  readonly registry: Registry;
  /** Outermost first. */
  readonly middleware: readonly Middleware[];
  readonly reading: ReadingRules;
  /** Milliseconds a handler may take unless its definition says otherwise. */
  readonly timeoutMs: number;
  /** What the server's `lifespan` opened; opens it on first use. */
  lifespan(): Promise<unknown>;
}

/** One definition that came, went or was exchanged. */
export interface Change {
  readonly kind: DefinitionKind;
  readonly name: string;
  readonly what: "added" | "removed" | "replaced";
}

/** A definition, and where it lives if it came by mounting. */
export type Kept<T> = T & { readonly mounted?: Mounted<Home> };
type Entry =
  | { kind: "tool"; compiled: Kept<CompiledTool> }
  | { kind: "resource"; compiled: Kept<CompiledResource> }
  | { kind: "prompt"; compiled: Kept<CompiledPrompt> };

/** Lists as they go out. Every array is made once and replaced when a definition changes: its identity is its version. */
export interface Lists {
  readonly tools: Readonly<Record<Era, readonly Tool[]>>;
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplateType[];
  readonly prompts: readonly Prompt[];
}

/** Everything a server offers, compiled once and shared by all requests, connections and eras. */
export interface Registry {
  /** Grows with every change of the lists: what was derived from them is stale then. */
  readonly revision: number;
  readonly tools: ReadonlyMap<string, Kept<CompiledTool>>;
  readonly prompts: ReadonlyMap<string, Kept<CompiledPrompt>>;
  readonly resources: ReadonlyMap<string, Kept<CompiledResource>>;
  /**
   * Who suggests values for `prompt <name>` or `resource <uri template>`; undefined when there is no such thing for the viewer.
   */
  completersOf(key: string, viewer: Viewer): Completers | undefined;
  /** All definitions, whoever may see them. */
  readonly lists: Lists;
  /** What this viewer may see; the arrays of `lists` themselves where nothing is hidden from anybody. */
  listsFor(viewer: Viewer): Lists;
  /** The first resource that exists for the viewer and matches. */
  findResource(
    uri: string,
    viewer: Viewer,
  ): { resource: Kept<CompiledResource>; variables: Record<string, string> } | undefined;
  /** Whether there are resources at this address, and none that this viewer may know of and read. */
  hides(uri: string, viewer: Viewer): boolean;
  addTool(name: string, options: ToolOptions, run: Run): void;
  addResource(uri: string, options: ResourceOptions, run: Run): void;
  addPrompt(name: string, options: PromptOptions, run: Run): void;
  /** @throws ConfigError `code: "unknown_definition"` */
  remove(kind: DefinitionKind, name: string): void;
  /** Runs `add` so that it may take the place of the definition of that name, which must exist. */
  replacing(kind: DefinitionKind, name: string, add: () => void): void;
  /** Takes over a mounted server's definition under a prefix. */
  adopt(kind: DefinitionKind, name: string, home: Home, prefix: string): void;
  /** Calls `listener` after each change; returns how to stop that. The serving side sends list-changed from here. */
  onChange(listener: (change: Change) => void): () => void;
}

const byName = (a: { name: string }, b: { name: string }): number => (a.name < b.name ? -1 : 1);

/**
 * A name under a prefix: `shop_refund` for tools and prompts; for resources the prefix becomes the first part of what follows
 * the scheme, `order://shop/{id}` for `order://{id}` and `urn:shop/a` for `urn:a`.
 */
export function prefixed(kind: DefinitionKind, prefix: string, name: string): string {
  return kind === "resource" ? name.replace(/^([^:]+:(?:\/\/)?)/, `$1${prefix}/`) : `${prefix}_${name}`;
}

/** Undoes {@link prefixed} for a resource's URI. */
export function unprefixedUri(prefix: string, uri: string): string {
  const [, scheme = "", rest = ""] = /^([^:]+:(?:\/\/)?)(.*)$/s.exec(uri) ?? [];
  return rest.startsWith(`${prefix}/`) ? `${scheme}${rest.slice(prefix.length + 1)}` : uri;
}

/** Different views of the lists that are kept: callers with the same rights see the same one. */
const MAX_VIEWS = 16;

/** @param visibleTags the server's rule about tags */
export function createRegistry(visibleTags?: VisibleTags): Registry {
  const tagsOf = visibleTags && oncePerRequest(visibleTags);
  const tools = new Map<string, Kept<CompiledTool>>();
  const prompts = new Map<string, Kept<CompiledPrompt>>();
  const resources = new Map<string, Kept<CompiledResource>>();
  const maps = { tool: tools, prompt: prompts, resource: resources };
  const listeners = new Set<(change: Change) => void>();
  let revision = 0;
  let whole: Lists | undefined;
  /** Definitions that not everybody sees. */
  let restricted: readonly Access[] | undefined;
  /** Lists by which of the restricted definitions are in them. */
  const views = new Map<string, Lists>();
  let replaced: { kind: DefinitionKind; name: string } | undefined;

  const build = (sees: (access: Access) => boolean): Lists => {
    const seen = <T extends { access: Access }>(map: ReadonlyMap<string, T>): T[] =>
      [...map.values()].filter(({ access }) => sees(access));
    const listed = seen(resources).map(({ listing }) => listing);
    const byEra = (era: Era) =>
      seen(tools)
        .map((tool) => tool.listing[era])
        .sort(byName);
    return {
      tools: { modern: byEra("modern"), legacy: byEra("legacy") },
      resources: listed.filter((listing): listing is Resource => "uri" in listing),
      templates: listed.filter((listing): listing is ResourceTemplateType => "uriTemplate" in listing),
      prompts: seen(prompts)
        .map(({ listing }) => listing)
        .sort(byName),
    };
  };
  const changed = (change: Change): void => {
    revision += 1;
    whole = undefined;
    restricted = undefined;
    views.clear();
    for (const listener of listeners) listener(change);
  };
  const missing = (kind: DefinitionKind, name: string): ConfigError => {
    const near = didYouMean(name, [...maps[kind].keys()]);
    return new ConfigError(`There is no ${kind} "${name}"${near ? `; did you mean "${near}"?` : ""}`, {
      code: "unknown_definition",
      data: { kind, name },
    });
  };
  const put = ({ kind, compiled }: Entry): void => {
    const name = kind === "resource" ? compiled.uri : compiled.name;
    const inPlace = replaced?.kind === kind && replaced.name === name;
    if (maps[kind].has(name) && !inPlace) {
      const what = kind === "resource" ? "a URI is" : "names are";
      throw new ConfigError(
        `${kind[0]?.toUpperCase()}${kind.slice(1)} "${name}" is defined twice; ${what} unique within a server`,
        { code: "duplicate", data: { name } },
      );
    }
    if (kind === "tool") tools.set(name, compiled);
    else if (kind === "prompt") prompts.set(name, compiled);
    else resources.set(name, compiled);
    changed({ kind, name, what: inPlace ? "replaced" : "added" });
  };

  const registry: Registry = {
    get revision() {
      return revision;
    },
    tools,
    prompts,
    resources,
    get lists() {
      whole ??= build(() => true);
      return whole;
    },
    listsFor(viewer) {
      restricted ??= Object.values(maps).flatMap((map) =>
        [...map.values()].flatMap(({ access }) => (access.open ? [] : [access])),
      );
      if (restricted.length === 0) return registry.lists;
      // what is listed depends on nothing else, so who sees the same gets the same list, serialised once
      const seen = new Set(restricted.filter((access) => isListed(access, viewer)));
      const view = restricted.map((access) => (seen.has(access) ? "1" : "0")).join("");
      let lists = views.get(view);
      if (!lists) {
        lists = build((access) => access.open || seen.has(access));
        if (views.size >= MAX_VIEWS) views.clear();
        views.set(view, lists);
      }
      return lists;
    },
    findResource(uri, viewer) {
      // a fixed URI wins over a template that would match it too
      const exact = resources.get(uri);
      for (const resource of exact ? [exact, ...resources.values()] : resources.values()) {
        const variables = resource.match(uri);
        if (variables && (resource.access.open || resource.access.exists(viewer))) return { resource, variables };
      }
      return undefined;
    },
    hides(uri, viewer) {
      const all = [...resources.values()];
      if (!all.some(({ access, match }) => !access.open && match(uri))) return false;
      return !all.some(({ access, match }) => match(uri) && isListed(access, viewer));
    },
    completersOf(key, viewer) {
      const [kind, name = ""] = key.split(/ (.*)/s, 2);
      const found = kind === "prompt" ? prompts.get(name) : resources.get(name);
      const fixed = found && "listing" in found && "uri" in found.listing;
      return found && !fixed && isListed(found.access, viewer) ? found.complete : undefined;
    },
    addTool: (name, options, run) => put({ kind: "tool", compiled: compileTool(name, options, run, tagsOf) }),
    addResource: (uri, options, run) => put({ kind: "resource", compiled: compileResource(uri, options, run, tagsOf) }),
    addPrompt: (name, options, run) => put({ kind: "prompt", compiled: compilePrompt(name, options, run, tagsOf) }),
    remove(kind, name) {
      if (!maps[kind].delete(name)) throw missing(kind, name);
      changed({ kind, name, what: "removed" });
    },
    replacing(kind, name, add) {
      if (!maps[kind].has(name)) throw missing(kind, name);
      replaced = { kind, name };
      try {
        add();
      } finally {
        replaced = undefined;
      }
    },
    adopt(kind, name, home, prefix) {
      const as = prefixed(kind, prefix, name);
      const mounted = { home, name, prefix };
      const tool = kind === "tool" ? home.registry.tools.get(name) : undefined;
      const prompt = kind === "prompt" ? home.registry.prompts.get(name) : undefined;
      const resource = kind === "resource" ? home.registry.resources.get(name) : undefined;
      if (kind !== "resource") checkName(kind === "tool" ? "Tool" : "Prompt", as);
      if (tool) {
        const { modern, legacy } = tool.listing;
        const listing = { modern: { ...modern, name: as }, legacy: { ...legacy, name: as } };
        put({ kind: "tool", compiled: { ...tool, name: as, listing, mounted } });
      }
      if (prompt) {
        put({ kind: "prompt", compiled: { ...prompt, name: as, listing: { ...prompt.listing, name: as }, mounted } });
      }
      if (resource) {
        const listing =
          "uri" in resource.listing ? { ...resource.listing, uri: as } : { ...resource.listing, uriTemplate: as };
        put({ kind: "resource", compiled: { ...resource, uri: as, match: matcher(as), listing, mounted } });
      }
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
  return registry;
}
