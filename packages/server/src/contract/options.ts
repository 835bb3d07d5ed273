import { ConfigError, isRecord, type Json, type JsonObject, type Schema } from "@tenon/core";
import type { ContractKey } from "@tenon/core/contract";
import {
  checkOptions,
  jsonSchemaOf,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  text,
} from "@tenon/core/internal";
import { type AnySchema, toSchema } from "../definition/json-schema.ts";
import type { AnyContext } from "../handler/context.ts";

/** The context contract of a server: which context every call must carry, and who vouches for what the server announces. */
export interface ContractOptions<S extends AnySchema = AnySchema> {
  /**
   * The context: a schema of an object, from a schema library or as JSON Schema. It is announced, and checked, as JSON Schema: a
   * rule that JSON Schema cannot say (a `refine`) belongs in the handler. Required means present and not empty; nothing is converted.
   */
  schema: S;
  /**
   * What clients may ask for, such as `["tools.list", "tools.execute"]`; everything else is refused. Default: what the server's
   * definitions implement.
   */
  capabilities?: readonly string[];
  /**
   * One or two keys that sign the announcement, as `tenon keys new --contract` prints them or as objects. Default:
   * `TENON_CONTRACT_KEYS`, else the plain secret in `MCP_SERVER_SECRET`, else the announcement is not signed.
   */
  keys?: readonly ContractKey[] | string;
  /** How the announcement calls this server. Default: its `name`. */
  serverId?: string;
  /** How callers prove who they are, for people and programs; never a secret. Default: what `auth` says of itself. */
  authentication?: Readonly<Record<string, Json>>;
  /** The field of the context that names the session. Default: `session_id`, where the schema has it. */
  session?: string;
  /** Milliseconds the last context of a session is kept for `contexts/get`. Default 24 hours. */
  contextTtlMs?: number;
}

/** What handlers get as `ctx.context`: the type of a schema library's schema. */
export type ContextOf<S> = [S] extends [Schema<unknown, infer In>] ? Readonly<In> : AnyContext;

/** What `contract` of `createServer` was given, read as far as it can be without a compiler. */
export interface ContractSettings {
  readonly schema: JsonObject;
  readonly capabilities: readonly string[] | undefined;
  readonly keys: readonly ContractKey[] | string | undefined;
  readonly serverId: string | undefined;
  readonly authentication: JsonObject | undefined;
  /** The field of the context that names the session; undefined where it has none. */
  readonly session: string | undefined;
  readonly ttlMs: number;
}

const DAY_MS = 24 * 60 * 60 * 1_000;
const SESSION_FIELD = "session_id";
const where = "createServer({ contract })";

function refuse(option: string, problem: string): never {
  throw new ConfigError(`${where}.${option} ${problem}`, { code: "invalid_option" });
}

const capabilityList: OptionCheck = (value) => {
  const isList = Array.isArray(value) && value.every((one) => typeof one === "string" && one !== "");
  if (!isList) refuse("capabilities", 'must be a list of texts, such as ["tools.list", "tools.execute"]');
};
const keyList: OptionCheck = (value) => {
  // never what was given: it is a key
  if (typeof value !== "string" && !Array.isArray(value)) refuse("keys", "must be a list of keys, or their text form");
};
const jsonRecord: OptionCheck = (value) => {
  if (!isRecord(value)) refuse("authentication", 'must be an object, such as { type: "jwt", issuer: "https://…" }');
};

const OPTIONS: OptionChecks<ContractOptions> = {
  schema: (value) => {
    if (value === null || (typeof value !== "object" && typeof value !== "function")) {
      refuse("schema", "must be a schema of an object, from a schema library or as JSON Schema");
    }
  },
  capabilities: capabilityList,
  keys: keyList,
  serverId: text,
  authentication: jsonRecord,
  session: text,
  contextTtlMs: milliseconds,
};

/** Refuses a `contract` that cannot be one. */
export const contractOption: OptionCheck = (given) =>
  checkOptions(given as object, OPTIONS as Readonly<Record<string, OptionCheck>>, where); // it refuses what is no object

/**
 * The contract's settings.
 * @throws ConfigError `code: "schema"` for what is no schema of an object, `"invalid_option"` for a session field it does not have
 */
export function readContractOptions(options: ContractOptions): ContractSettings {
  if (options.schema === undefined) refuse("schema", "is missing: say which context every call must carry");
  const schema = jsonSchemaOf(toSchema(options.schema, `${where}.schema`), "input", `${where}.schema`);
  if (schema.type !== "object" || !isRecord(schema.properties ?? {})) {
    throw new ConfigError(
      `${where}.schema must describe an object with properties, got type ${JSON.stringify(schema.type)}`,
      {
        code: "schema",
      },
    );
  }
  const fields = isRecord(schema.properties) ? schema.properties : {};
  const { session, capabilities, keys, serverId, authentication, contextTtlMs } = options;
  if (session !== undefined && !Object.hasOwn(fields, session)) {
    refuse("session", `is ${JSON.stringify(session)}, which is no property of the schema`);
  }
  return {
    schema: structuredClone(schema),
    capabilities,
    keys,
    serverId,
    authentication: authentication === undefined ? undefined : structuredClone(authentication),
    session: session ?? (Object.hasOwn(fields, SESSION_FIELD) ? SESSION_FIELD : undefined),
    ttlMs: contextTtlMs ?? DAY_MS,
  };
}
