import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { ConfigError, isRecord, type JsonObject, META, messageOf } from "@tenon/core";
import {
  CAPABILITY_OF,
  CONTRACT_VERSIONS,
  type ContextFault,
  type ContractDeclaration,
  type ContractVersion,
  contextFault,
  readDeclaration,
} from "@tenon/core/contract";
import { describeFault } from "@tenon/core/internal";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import type { ContextStore } from "@tenon/store";
import type { TokenVerifier } from "../auth/types.ts";
import type { Service } from "../dispatch/dispatch.ts";
import type { Caller, Exchange } from "../handler/context.ts";
import { implementedCapabilities, refuseDrift } from "./capabilities.ts";
import { createDeclaring, versionAsked } from "./declaring.ts";
import { openContractKeys } from "./keys.ts";
import type { ContractSettings } from "./options.ts";
import { createRemembering } from "./remembering.ts";

/** The context of a request, as the contract's check let it through. */
export interface AcceptedContext {
  /** Frozen, all the way down. */
  readonly context: Readonly<JsonObject>;
  /** What the contract's session field says. */
  readonly session: string | undefined;
}

/** The answer of `contexts/get`. */
export type LastContext = { readonly context: JsonObject; readonly expires_at?: string };

/** The contract of a server at work. */
export interface Contract {
  /**
   * Lets a request through or refuses it, before anything of the author's runs: its version, its capability, its context. What was
   * accepted is on the exchange afterwards.
   * @throws ProtocolError -32602 with `data.reason`, -32601 for a capability that is not declared
   */
  admit(method: string, exchange: Exchange): void;
  /** What is wrong with a context; undefined when all is well. */
  fault(context: unknown, caller: Caller | undefined): ContextFault | undefined;
  /** The version a request asks for. @throws ProtocolError -32602 with `data.reason` `"unsupported_contract_version"` */
  version(meta: Readonly<Record<string, unknown>> | undefined): ContractVersion;
  /** The declaration as it is to be announced now. */
  declaration(version: ContractVersion): ContractDeclaration;
  /** Milliseconds the declaration lasts; undefined without keys. */
  lasts(): number | undefined;
  /** The signature older peers read, over what they read; undefined where there is no shared secret. */
  plainSignature(over: JsonObject): string | undefined;
  /** The context of a stored call, which was accepted when it was made. */
  accepted(meta: Readonly<Record<string, unknown>>): AcceptedContext;
  /** The last accepted context of a session of this caller. @throws ProtocolError -32602 `data.reason` `"unknown_context"` */
  last(session: unknown, caller: Caller | undefined, options: { withoutExpiry: boolean }): Promise<LastContext>;
  /** Writes down what is not written yet. */
  close(): Promise<void>;
}

/** Methods that run something of the author's, and so need the context. */
const NEED_CONTEXT: ReadonlySet<string> = new Set(["tools/call", "resources/read", "prompts/get"]);
/** Characters of a session's name. */
const MAX_SESSION_CHARS = 256;
const USER_FIELD = "user_id";

const capabilityOf: Readonly<Record<string, string>> = CAPABILITY_OF;

const isSessionName = (name: unknown): name is string =>
  typeof name === "string" && name !== "" && name.length <= MAX_SESSION_CHARS;

function freeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  Object.freeze(value);
  for (const key in value) freeze(Reflect.get(value, key));
}

const invalid = (message: string, data: JsonObject): ProtocolError =>
  new ProtocolError(ProtocolErrorCode.InvalidParams, message, data);

/** How a contract's fault is said in an error of the protocol. */
export function contextRefusal({ reason, field, problem }: ContextFault): ProtocolError {
  return invalid(`The context does not meet this server's contract: ${problem}`, { reason, field });
}

/** How `auth` is told of where the author does not say it. */
function authenticationOf(verifier: TokenVerifier | undefined): JsonObject | undefined {
  if (!verifier) return undefined;
  const { issuers, resource, requiredScopes } = verifier;
  return {
    type: "bearer",
    issuers: [...issuers],
    ...(resource !== undefined && { resource }),
    ...(requiredScopes.length > 0 && { scopes: [...requiredScopes] }),
  };
}

/** A server must not announce what no client would read. */
function refuseUnreadable(declaration: ContractDeclaration): void {
  try {
    readDeclaration(JSON.parse(JSON.stringify(declaration)));
  } catch (cause) {
    throw new ConfigError(`createServer({ contract }): no client would read this: ${messageOf(cause)}`, {
      code: "invalid_option",
      cause,
    });
  }
}

/**
 * Puts the contract of a server to work.
 * @throws ConfigError `code: "schema"`, `"contract_keys"`, `"contract_drift"`, `"invalid_option"` for what is too large to announce
 */
export function openContract(
  settings: ContractSettings,
  service: Service,
  { verifier, contexts }: { verifier: TokenVerifier | undefined; contexts: ContextStore },
): Contract {
  const { schema, session: sessionField, ttlMs } = settings;
  const compiled = schemaCheck(schema, "first");
  if (compiled.fault) {
    throw new ConfigError(`createServer({ contract }).schema cannot be used: ${describeFault(compiled.fault)}`, {
      code: "schema",
    });
  }
  if (settings.capabilities) refuseDrift(settings.capabilities, service);
  const keys = openContractKeys(settings.keys, process.env, service.log);
  const declared = settings.capabilities && [...new Set(settings.capabilities)];
  let implemented: { revision: number; capabilities: readonly string[] } | undefined;
  const capabilities = (): readonly string[] => {
    if (declared) return declared;
    const { revision } = service.registry;
    if (implemented?.revision !== revision) implemented = { revision, capabilities: implementedCapabilities(service) };
    return implemented.capabilities;
  };
  const declaring = createDeclaring(
    {
      server_id: settings.serverId ?? service.serverName,
      context_schema: schema,
      authentication: settings.authentication ?? authenticationOf(verifier),
      capabilities,
    },
    keys.ring,
  );
  refuseUnreadable(declaring.of(CONTRACT_VERSIONS[0]));
  const remembering = createRemembering(contexts, { server: service.serverName, ttlMs, log: service.log });

  function fault(context: unknown, caller: Caller | undefined): ContextFault | undefined {
    const found = contextFault(schema, context);
    if (found) return found;
    const given: Readonly<Record<string, unknown>> = isRecord(context) ? context : {};
    const wrong = (field: string, problem: string): ContextFault => ({
      reason: "invalid_context_value",
      field,
      problem,
    });
    // who calls is what the token says; a context that says otherwise was made up or mixed up
    if (caller && Object.hasOwn(given, USER_FIELD) && given[USER_FIELD] !== caller.subject) {
      return wrong(USER_FIELD, `${USER_FIELD} is not the subject of the caller's token`);
    }
    const session = sessionField !== undefined && Object.hasOwn(given, sessionField) ? given[sessionField] : undefined;
    if (typeof session === "string" && session.length > MAX_SESSION_CHARS) {
      return wrong(String(sessionField), `${sessionField} has more than ${MAX_SESSION_CHARS} characters`);
    }
    return undefined;
  }

  function accepted(meta: Readonly<Record<string, unknown>>): AcceptedContext {
    const given = meta[META.context];
    // a part of a message that came as JSON
    const context = (isRecord(given) ? given : {}) as JsonObject;
    freeze(context);
    const session =
      sessionField !== undefined && Object.hasOwn(context, sessionField) ? context[sessionField] : undefined;
    return { context, session: typeof session === "string" ? session : undefined };
  }

  function version(meta: Readonly<Record<string, unknown>> | undefined): ContractVersion {
    const found = versionAsked(meta?.[META.contract]);
    if (found) return found;
    throw invalid(
      `This server does not have the version of the context contract that was asked for; it has ${CONTRACT_VERSIONS.join(", ")}`,
      { reason: "unsupported_contract_version", supported: [...CONTRACT_VERSIONS] },
    );
  }

  return {
    fault,
    version,
    accepted,
    declaration: (asked) => declaring.of(asked),
    lasts: () => declaring.lasts(),
    plainSignature: keys.plainSignature,
    admit(method, exchange) {
      const { meta, caller } = exchange;
      if (META.contract in meta) version(meta);
      const capability = capabilityOf[method];
      if (capability !== undefined && !capabilities().includes(capability)) {
        throw new ProtocolError(
          ProtocolErrorCode.MethodNotFound,
          `${method} needs the capability ${capability}, which this server's contract does not declare`,
          { reason: "undeclared_capability", capability },
        );
      }
      if (!NEED_CONTEXT.has(method)) return;
      const found = fault(meta[META.context], caller);
      if (found) throw contextRefusal(found);
      exchange.accepted = accepted(meta);
      const session = exchange.accepted.session ?? exchange.sessionId;
      if (isSessionName(session)) remembering.note(session, caller, exchange.accepted.context);
    },
    async last(session, caller, { withoutExpiry }) {
      const found = isSessionName(session) ? await remembering.find(session, caller) : undefined;
      if (!found) {
        throw invalid(
          "There is no context of this session_id: none was accepted from this caller, or its time is over",
          { reason: "unknown_context" },
        );
      }
      return {
        context: found.context,
        ...(!withoutExpiry && { expires_at: new Date(found.expiresAt).toISOString() }),
      };
    },
    close: () => remembering.close(),
  };
}
