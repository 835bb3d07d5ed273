import {
  type ClientCapabilities,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
} from "@modelcontextprotocol/server";
import { ConfigError, type Era, type Infer, isRecord, type JsonObject, type Schema } from "@tenon/core";
import { checkOptions, describeIssues, toJson, validate } from "@tenon/core/internal";
import { type Access, type AccessOptions, compileAccess, demandScopes } from "../definition/access.ts";
import { maskFailure, ToolError } from "../errors.ts";
import type { ClientDescription, Exchange } from "../handler/context.ts";
import { requestLog, type ServerLog } from "../log.ts";

/** What an extension's method gets besides its parameters. */
export interface ExtensionExchange extends Exchange {
  /** The settings the client declared for this extension; undefined when it did not declare it. */
  readonly declared: Readonly<Record<string, unknown>> | undefined;
  /** What the server's `lifespan` opened. */
  readonly lifespan: unknown;
}

/** A JSON-RPC method an extension adds. Whom it is hidden from, it does not exist for. */
export interface ExtensionMethod<P extends Schema = Schema> extends Pick<AccessOptions, "scopes" | "visible"> {
  /** Schema of the parameters, without `_meta`. Left out: any object. */
  params?: P;
  /** Eras the method exists on; elsewhere it is an unknown method. Default: the extension's. */
  eras?: readonly Era[];
  /**
   * Returns the result as a JSON object. A thrown `ToolError` reaches the caller as -32602 with its message, `code` and
   * `data`; an SDK `ProtocolError` passes as it is; anything else is masked and logged under a reference.
   */
  handler(params: Infer<P>, exchange: ExtensionExchange): unknown;
}

/** The peer of a session that has just been opened. */
export interface ConnectedClient {
  /** What the client says of itself. */
  readonly client: ClientDescription;
  /** The revision of the session. */
  readonly era: Era;
  /** The session's id; undefined on stdio. */
  readonly sessionId: string | undefined;
  /** The settings the client declared for this extension; undefined when it did not declare it. */
  readonly declared: Readonly<Record<string, unknown>> | undefined;
}

/** An optional part of the protocol (2026-07-28, extensions): a capability with settings, and the methods behind it. */
export interface Extension {
  /** Reverse-DNS prefix, slash, name: `"com.example/audit"`. */
  id: string;
  /** Advertised as `capabilities.extensions[id]`. Default `{}`. */
  settings?: JsonObject;
  /** Eras it is offered on. Default both. */
  eras?: readonly Era[];
  /** The methods it adds, by JSON-RPC name such as `"audit/list"`. */
  methods?: Readonly<Record<string, ExtensionMethod>>;
  /**
   * What a client must have declared to call the methods; one that has not gets -32021 that says so.
   * `"declared"` is short for this extension itself.
   */
  requires?: "declared" | ClientCapabilities;
  /**
   * Called once per session of 2025-11-25, when the client has introduced itself. On 2026-07-28 there are no sessions: look at
   * `exchange.declared` in each request.
   */
  onConnect?(peer: ConnectedClient): void | Promise<void>;
}

/** Keeps the types of a method's schema and handler together. */
export function extensionMethod<P extends Schema>(method: ExtensionMethod<P>): ExtensionMethod {
  return method as unknown as ExtensionMethod; // its handler only ever gets what its own schema let through
}

/** The extensions of one server, as the protocol layers of all transports ask for them. */
export interface Extensions {
  /**
   * @param announced false: what a server advertises of it is said elsewhere. Default true
   * @throws ConfigError for a malformed or taken id, a method that is taken or belongs to the protocol, an unknown option
   */
  add(extension: Extension, announced?: boolean): void;
  /** What the server advertises; undefined when there is nothing. */
  capabilities(era: Era): Record<string, JsonObject> | undefined;
  /** Who may use each method, by its name. */
  readonly access: ReadonlyMap<string, Access>;
  /** Names of the methods that exist on an era. */
  methods(era: Era): readonly string[];
  /**
   * Answers a request of an extension's method.
   * @throws ProtocolError with the code the revision asks for
   */
  call(
    method: string,
    params: Record<string, unknown>,
    exchange: Exchange,
    lifespan: () => Promise<unknown>,
  ): Promise<Result>;
  /** Tells the extensions that a legacy session was opened. */
  connected(peer: Omit<ConnectedClient, "declared">): void;
}

const BOTH: readonly Era[] = ["modern", "legacy"];
const ID = /^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?\/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?$/;
/** Families of methods the protocol itself owns; `tasks/` is free, since tasks became an extension in 2026-07-28. */
const OWNED =
  /^(initialize|ping|rpc\..*|notifications\/.*|server\/.*|tools\/.*|prompts\/.*|resources\/(list|read|subscribe|unsubscribe|templates\/.*)|completion\/.*|logging\/.*|subscriptions\/.*|sampling\/.*|elicitation\/.*|roots\/.*)$/;

const settingsOf = (client: ClientDescription, id: string): Readonly<Record<string, unknown>> | undefined => {
  const declared = client.capabilities.extensions?.[id];
  return isRecord(declared) ? declared : undefined;
};

/** Whether everything named in `required` stands in `declared`, level by level. */
function covers(declared: unknown, required: unknown): boolean {
  if (!isRecord(required)) return declared !== undefined && declared !== false;
  return isRecord(declared) && Object.entries(required).every(([key, value]) => covers(declared[key], value));
}

/** @param log where masked failures go */
export function createExtensions(log: ServerLog, exposeErrors: boolean): Extensions {
  const byId = new Map<string, Extension>();
  const byMethod = new Map<string, { extension: Extension; method: ExtensionMethod; eras: readonly Era[] }>();
  const unannounced = new Set<string>();
  const access = new Map<string, Access>();

  function failure(name: string, exchange: Exchange, error: unknown): ProtocolError {
    if (error instanceof ProtocolError) return error;
    if (error instanceof ToolError) {
      const data = isRecord(error.data) ? error.data : error.data === undefined ? {} : { data: error.data };
      return new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, { ...data, code: error.code });
    }
    return new ProtocolError(
      ProtocolErrorCode.InternalError,
      maskFailure(requestLog(log, exchange), name, error, exposeErrors),
    );
  }

  return {
    access,
    add(extension, announced = true) {
      const where = `extension ${JSON.stringify(extension.id)}`;
      checkOptions(extension, ["id", "settings", "eras", "methods", "requires", "onConnect"], where);
      if (!ID.test(extension.id)) {
        throw new ConfigError(
          `${where}: an id is a reverse-DNS prefix, a slash and a name, such as "com.example/audit"`,
          {
            code: "name",
          },
        );
      }
      if (byId.has(extension.id)) {
        throw new ConfigError(`${where} is added twice; a server offers an extension once`, { code: "duplicate" });
      }
      const methods = Object.entries(extension.methods ?? {});
      const allowed = new Map<string, Access>();
      // everything is checked before anything is kept: a refused extension leaves no method behind
      for (const [name, method] of methods) {
        checkOptions(method, ["params", "eras", "scopes", "visible", "handler"], `${where}, method "${name}"`);
        allowed.set(name, compileAccess(`${where}, method "${name}"`, method, undefined));
        if (OWNED.test(name) || !/^[A-Za-z0-9_.$-]+(\/[A-Za-z0-9_.$-]+)+$/.test(name)) {
          throw new ConfigError(
            `${where}: "${name}" cannot be a method of an extension; use a prefix of its own, such as "audit/list"`,
            { code: "name", data: { method: name } },
          );
        }
        const stray = method.eras?.find((era) => !(extension.eras ?? BOTH).includes(era));
        if (stray) {
          throw new ConfigError(
            `${where}: the method "${name}" is for the ${stray} era, where the extension is not offered`,
            {
              code: "eras",
              data: { method: name },
            },
          );
        }
        const other = byMethod.get(name);
        if (other) {
          throw new ConfigError(`${where}: the method "${name}" belongs to ${other.extension.id} already`, {
            code: "duplicate",
            data: { method: name },
          });
        }
      }
      byId.set(extension.id, extension);
      if (!announced) unannounced.add(extension.id);
      for (const [name, own] of allowed) access.set(name, own);
      for (const [name, method] of methods) {
        byMethod.set(name, { extension, method, eras: method.eras ?? extension.eras ?? BOTH });
      }
    },
    capabilities(era) {
      const offered = [...byId.values()].filter(
        (extension) => (extension.eras ?? BOTH).includes(era) && !unannounced.has(extension.id),
      );
      if (offered.length === 0) return undefined;
      return Object.fromEntries(offered.map(({ id, settings }) => [id, settings ?? {}]));
    },
    methods: (era) => [...byMethod].filter(([, { eras }]) => eras.includes(era)).map(([name]) => name),
    async call(name, { _meta, ...given }, exchange, lifespan) {
      const found = byMethod.get(name);
      const own = access.get(name);
      if (!found?.eras.includes(exchange.era) || !own?.exists(exchange)) {
        throw new ProtocolError(ProtocolErrorCode.MethodNotFound, `Method not found: ${name}`);
      }
      demandScopes(`Method ${name}`, own, exchange);
      const { extension, method } = found;
      const { requires } = extension;
      const required = requires === "declared" ? { extensions: { [extension.id]: {} } } : requires;
      if (required && !covers(exchange.client.capabilities, required)) {
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: required });
      }
      let params: unknown = given;
      if (method.params) {
        const checked = await validate(method.params, given);
        if (checked.issues) {
          throw new ProtocolError(
            ProtocolErrorCode.InvalidParams,
            `Invalid parameters for ${name}: ${describeIssues(checked.issues)}`,
          );
        }
        params = checked.value;
      }
      try {
        const returned = await method.handler(params, {
          ...exchange,
          declared: settingsOf(exchange.client, extension.id),
          lifespan: await lifespan(),
        });
        const result = returned === undefined ? {} : toJson(returned, `result of ${name}`);
        if (isRecord(result)) return result;
        throw new ConfigError(`${name} must return an object, got ${JSON.stringify(result)}`, { code: "result" });
      } catch (error) {
        throw failure(name, exchange, error);
      }
    },
    connected(peer) {
      for (const extension of byId.values()) {
        if (!extension.onConnect || !(extension.eras ?? BOTH).includes(peer.era)) continue;
        const connection = { ...peer, declared: settingsOf(peer.client, extension.id) };
        // the session goes on whatever an extension makes of it; the log says what happened
        Promise.resolve()
          .then(() => extension.onConnect?.(connection))
          .catch((error: unknown) => log("error", `onConnect of ${extension.id} failed`, { error }));
      }
    },
  };
}
