import type { McpServer, ReadResourceResult, Resource, ServerContext } from "@modelcontextprotocol/server";
import {
  type SkillSource as SdkSource,
  SKILLS_EXTENSION_ID,
  type Skill,
  type SkillCatalog,
  type SkillReadResult,
  SkillsExtension,
  type SkillWarning,
} from "@modelcontextprotocol/server/ext/skills";
import { ConfigError, type Era, type Schema } from "@tenon/core";
import { checkOptions, isSchema, LEGACY_REVISION, MODERN_REVISION } from "@tenon/core/internal";
import type { CacheHint, Exchange, Extension, ExtensionMethod, TenonServer } from "../index.ts";

export type { Skill, SkillReadResult } from "@modelcontextprotocol/server/ext/skills";

/** Skills that do not lie in a folder: generated, per caller, or too many to list. */
export interface SkillSource {
  /** One page of entries; an empty or partial listing is allowed. */
  list(params: { cursor?: string }, exchange: Exchange): Promise<{ skills: Skill[]; nextCursor?: string }>;
  /** The entry whose `SKILL.md` is at `uri`, listed or not. */
  get(uri: string, exchange: Exchange): Promise<Skill | undefined>;
  /** A file's content; undefined when there is no such file. */
  read(uri: string, exchange: Exchange): Promise<SkillReadResult | undefined>;
  /** Direct children of a directory; having it declares `directoryRead`. */
  readDirectory?(
    uri: string,
    params: { cursor?: string },
    exchange: Exchange,
  ): Promise<{ resources: Resource[]; nextCursor?: string } | undefined>;
}

/** How skills are found, checked and kept. */
export interface SkillsOptions {
  /** For a folder: in front of every skill's name, so that `"acme"` serves `skill://acme/<skill>/…`. Default: nothing. */
  prefix?: string;
  /** For a source: every URI of it starts with this. Default `skill://`. */
  baseUri?: string;
  /** For a folder: entries of one page of a list. Default 100. */
  pageSize?: number;
  /** For a folder: what one skill may hold. What is above is a warning, with `strict` an error. */
  limits?: {
    /** Files of one skill. Default 512. */
    files?: number;
    /** Bytes of all its files. Default 16 MiB. */
    bytes?: number;
  };
  /** How long and for whom clients may keep lists and files. Default: not at all. */
  cache?: CacheHint;
  /** Makes an error of what is otherwise a warning. Default false. */
  strict?: boolean;
  /** Hears of warnings. Default: a line on stderr. */
  onWarning?: (warning: SkillWarning) => void;
}

const OPTIONS = [
  "prefix",
  "baseUri",
  "pageSize",
  "limits",
  "cache",
  "strict",
  "onWarning",
] as const satisfies ReadonlyArray<keyof SkillsOptions>;

/** Skills ready to be served, and what they consist of. */
export interface Skills {
  /** Offers the skills: the extension's methods and the files as resources. Returns the server. */
  addTo<Lifespan>(server: TenonServer<Lifespan>): TenonServer<Lifespan>;
  /** What clients see, where the skills lie in a folder. */
  readonly entries: readonly Skill[];
  /**
   * Reads the folder again, all or nothing: `skills/list` and the files follow at once, the plain list of resources names the
   * skills of the start.
   * @throws ConfigError where the skills come from a source
   */
  reload(): Promise<{ added: string[]; removed: string[]; changed: string[] }>;
}

type Handler = (params: unknown, exchange: Exchange) => Promise<Record<string, unknown>>;
interface Captured {
  methods: Map<string, { params: Schema; handler: Handler }>;
  read: (uri: URL, exchange: Exchange) => Promise<ReadResourceResult>;
  template: string;
  settings: Record<string, never>;
}

/**
 * The SDK wires skills to its own server class; this stands in for one and takes what it would register, so that one set of
 * handlers serves all our transports. It has exactly the members `attach` uses in the SDK version this package pins.
 */
function capture(extension: SkillsExtension, era: Era): Captured {
  const methods: Captured["methods"] = new Map();
  let read: Captured["read"] | undefined;
  let template = "";
  let settings: Captured["settings"] = {};
  const stand = {
    isConnected: () => false,
    registerResource(
      _name: string,
      resource: { uriTemplate: { toString(): string } },
      _about: object,
      handler: unknown,
    ) {
      template = resource.uriTemplate.toString();
      // it takes (uri, variables, context) and hands the context to the source, which gets our exchange
      read = (uri, exchange) =>
        (handler as (uri: URL, variables: object, context: unknown) => Promise<ReadResourceResult>)(uri, {}, exchange);
    },
    server: {
      assertCanSetRequestHandler: () => undefined,
      setRequestHandler(method: string, { params }: { params: unknown }, handler: unknown) {
        if (!isSchema(params)) throw new ConfigError(`skills: ${method} has no schema`, { code: "schema" });
        methods.set(method, { params, handler: handler as Handler }); // (params, context): the context is our exchange
      },
      registerCapabilities(capabilities: { extensions: Record<string, Record<string, never>> }) {
        settings = capabilities.extensions[SKILLS_EXTENSION_ID] ?? {};
      },
      getNegotiatedProtocolVersion: () => (era === "modern" ? MODERN_REVISION : LEGACY_REVISION),
    },
  };
  extension.attach(stand as unknown as McpServer); // see above
  if (!read) throw new ConfigError("skills: this version of the SDK registers no resource", { code: "sdk" });
  return { methods, read, template, settings };
}

function build(extension: SkillsExtension, catalog: SkillCatalog | undefined): Skills {
  const eras = { modern: capture(extension, "modern"), legacy: capture(extension, "legacy") };
  const { template, settings } = eras.modern;
  const read = (uri: string, exchange: Exchange): Promise<ReadResourceResult> =>
    eras[exchange.era].read(new URL(uri), exchange);
  const definition: Extension = {
    id: SKILLS_EXTENSION_ID,
    settings,
    methods: Object.fromEntries(
      [...eras.modern.methods].map(([name, { params }]): [string, ExtensionMethod] => [
        name,
        {
          params,
          handler: (given, exchange) => eras[exchange.era].methods.get(name)?.handler(given, exchange),
        },
      ]),
    ),
  };
  return {
    get entries() {
      return catalog?.entries ?? [];
    },
    async reload() {
      if (!catalog) throw new ConfigError("skills from a source have nothing to read again", { code: "skills" });
      const { added, removed, changed } = await catalog.reload();
      return { added, removed, changed };
    },
    addTo(server) {
      server.extension(definition);
      const prefix = template.slice(0, template.indexOf("{"));
      server.resource(
        template,
        { name: SKILLS_EXTENSION_ID, description: "Files of skills" },
        ({ path = "" }, ctx) => read(`${prefix}${path}`, ctx as unknown as Exchange), // a source reads caller, era, client and headers: both have them
      );
      for (const { uri, frontmatter } of catalog?.entries ?? []) {
        const about = { name: frontmatter.name, description: frontmatter.description, mimeType: "text/markdown" };
        server.resource(uri, about, (_, ctx) => read(uri, ctx as unknown as Exchange)); // as above
      }
      return server;
    },
  };
}

/**
 * Skills (SEP-2640, `io.modelcontextprotocol/skills`): folders with a `SKILL.md` that a model may read when a task calls for it.
 *
 * @param from a folder of skill folders, or a source
 * @throws ConfigError for an unknown option, SkillCatalogError when the folder cannot be read, or, with `strict`, when a skill in it is wrong
 * @example (await skills("./skills")).addTo(server)
 */
export async function skills(from: string | URL | SkillSource, options: SkillsOptions = {}): Promise<Skills> {
  checkOptions(options, OPTIONS, "skills(from, options)");
  checkOptions(options.limits ?? {}, ["files", "bytes"], "skills(from, options).limits");
  const { cache, ...rest } = options;
  checkOptions(cache ?? {}, ["ttlMs", "scope"], "skills(from, options).cache");
  const given = {
    ...rest,
    ...(cache && { cacheHint: { ttlMs: cache.ttlMs ?? 0, cacheScope: cache.scope ?? "private" } }),
  };
  if (typeof from === "string" || from instanceof URL) {
    const [{ loadSkills }, { fileURLToPath }] = await Promise.all([
      import("@modelcontextprotocol/server/ext/skills/node"),
      import("node:url"),
    ]);
    const catalog = await loadSkills(typeof from === "string" ? from : fileURLToPath(from), given);
    return build(catalog, catalog);
  }
  const source = {
    list: (params: { cursor?: string }, ctx: unknown) => from.list(params, ctx as Exchange), // capture() passes exchanges
    get: (uri: string, ctx: unknown) => from.get(uri, ctx as Exchange), // as above
    read: (uri: string, ctx: unknown) => from.read(uri, ctx as Exchange), // as above
    ...(from.readDirectory && {
      readDirectory: (uri: string, params: { cursor?: string }, ctx: ServerContext) =>
        from.readDirectory?.(uri, params, ctx as unknown as Exchange) ?? Promise.resolve(undefined), // as above
    }),
  } satisfies SdkSource;
  return build(new SkillsExtension({ ...given, source }), undefined);
}
