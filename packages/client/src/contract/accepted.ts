import { ContractError, isRecord, META, messageOf } from "@tenon/core";
import type * as Core from "@tenon/core/contract";
import type { ContractDeclaration } from "@tenon/core/contract";
import type { ToolRuntime } from "../types/calls.ts";
import type { ContractDrift, ContractInfo } from "../types/contracts.ts";
import type { ServerConfig } from "../types/servers.ts";

/** Capabilities by the part of the protocol's own that a server announces for them. */
const ANNOUNCED: Readonly<Record<string, readonly string[]>> = {
  tools: ["tools.list", "tools.execute"],
  resources: ["resources.list", "resources.read"],
  prompts: ["prompts.list", "prompts.get"],
  completions: ["completion.complete"],
};
const OF_PROTOCOL = new Set(Object.values(ANNOUNCED).flat());

/** Milliseconds until a server that announces a time that is over is asked again. */
const AGAIN_MS = 5_000;
/** Milliseconds that clocks of two machines may be apart: so long a contract may be in force after its time. */
const SKEW_MS = 5 * 60_000;

/** What a server can do, by method-level names, as the protocol says it. */
export function announcedCapabilities(capabilities: unknown): readonly string[] {
  if (!isRecord(capabilities)) return [];
  return Object.entries(ANNOUNCED).flatMap(([part, names]) => (isRecord(capabilities[part]) ? names : []));
}

/** The contract that is in force on one connection. */
export interface AcceptedContract {
  readonly info: ContractInfo;
  readonly declaration: ContractDeclaration;
  /** What was asked for, as `_meta` says it. */
  readonly asked: Readonly<Record<string, unknown>>;
  /** Milliseconds since 1970: from then on the server is asked anew; calls go on meanwhile. */
  readonly renewAt: number;
  /** Milliseconds since 1970 from which it is no longer in force. */
  readonly endsAt: number;
  /** Whether it allows all of these, such as `tools.execute`. */
  declares(...capabilities: readonly string[]): boolean;
  /**
   * Refuses a request that it does not allow, or whose context does not meet it; one without a context is asked only whether it is
   * allowed.
   * @throws ContractError `undeclared_capability`, `missing_context_field`, `invalid_context_value`
   */
  admit(method: string, context?: unknown): void;
}

/** Where what was declared and what the protocol says differ; undefined where they agree. */
export function driftOf(declared: ReadonlySet<string>, announced: readonly string[]): ContractDrift | undefined {
  const undeclared = announced.filter((one) => !declared.has(one));
  const unannounced = [...declared].filter((one) => OF_PROTOCOL.has(one) && !announced.includes(one));
  if (undeclared.length === 0 && unannounced.length === 0) return undefined;
  return Object.freeze({ undeclared, unannounced });
}

/** Puts a declaration in force. @param protocol the capabilities that the protocol announces */
export function acceptContract(
  { CAPABILITY_OF, contextError, contextFault }: typeof Core,
  server: string,
  declaration: ContractDeclaration,
  { signed, asked, protocol }: { signed: boolean; asked: Readonly<Record<string, unknown>>; protocol: unknown },
): AcceptedContract {
  const { capabilities, context_schema: schema, next_rotation_time: next, server_id: serverId, version } = declaration;
  const declared = new Set(capabilities);
  const now = Date.now();
  const drift = driftOf(declared, announcedCapabilities(protocol));
  const rotation = next === undefined ? Number.POSITIVE_INFINITY : Date.parse(next);
  const needed: Readonly<Record<string, string>> = CAPABILITY_OF;
  return Object.freeze<AcceptedContract>({
    declaration,
    asked,
    renewAt: rotation > now ? rotation : now + AGAIN_MS,
    endsAt: rotation + SKEW_MS,
    info: Object.freeze({
      version,
      serverId,
      capabilities: Object.freeze([...declared]),
      schema,
      signed,
      ...(next !== undefined && { nextRotation: next }),
      ...(drift && { drift }),
    }),
    declares: (...names) => names.every((name) => declared.has(name)),
    admit(method, ...given) {
      const capability = needed[method];
      if (capability !== undefined && !declared.has(capability)) {
        throw new ContractError(
          `server "${server}" does not declare ${capability} in its contract, so ${method} was not sent. It declares ` +
            `${[...declared].join(", ") || "nothing"}`,
          { code: "undeclared_capability", server, maybeExecuted: false, data: { capability, method } },
        );
      }
      const fault = given.length > 0 ? contextFault(schema, given[0]) : undefined;
      if (!fault) return;
      const hint = given[0] === undefined ? `: give \`contract.context\` of the server, or \`meta\` of the call` : "";
      throw contextError({ ...fault, problem: fault.problem + hint }, server);
    },
  });
}

/** What a request carries as context: what the configuration says, and over it what the request brought. Undefined: neither. */
function mergedContext(configured: Readonly<Record<string, unknown>> | undefined, brought: unknown): unknown {
  if (brought === undefined) return configured;
  return isRecord(brought) && configured ? { ...configured, ...brought } : brought;
}

/** Methods that run something of a server's author: they carry the context. */
const WITH_CONTEXT = new Set(["tools/call", "resources/read", "prompts/get", "completion/complete"]);

/**
 * The `_meta` of a request to a server whose contract is in force, with the context; unchanged to any other.
 * @param configured fields that the configuration gives; what `meta` brings counts more
 * @throws ContractError `undeclared_capability`, `missing_context_field`, `invalid_context_value`, `no_contract`; nothing was sent
 */
export function metaUnder(
  { contract, server }: { readonly contract: AcceptedContract | undefined; readonly server: string },
  method: string,
  meta: Readonly<Record<string, unknown>>,
  configured: Readonly<Record<string, unknown>> | undefined,
): Readonly<Record<string, unknown>> {
  if (!contract) {
    if (method !== "contexts/get") return meta;
    throw new ContractError(`server "${server}" has no contract, so it keeps no contexts; contexts/get was not sent`, {
      code: "no_contract",
      server,
      maybeExecuted: false,
    });
  }
  if (!WITH_CONTEXT.has(method)) {
    contract.admit(method);
    return method === "contexts/get" ? { ...contract.asked, ...meta } : meta;
  }
  const context = mergedContext(configured, meta[META.context]);
  contract.admit(method, context);
  return { ...meta, [META.context]: context ?? {} };
}

/** The fields that a server's configuration gives for a call. @throws ContractError `context_failed` where its function fails */
export function configuredContext(
  server: string,
  { contract }: ServerConfig,
  runtime: ToolRuntime,
): Readonly<Record<string, unknown>> | undefined {
  const context = contract?.context;
  if (typeof context !== "function") return context;
  const fail = (why: string, cause?: unknown): never => {
    const message = `servers.${server}.contract.context ${why}; nothing was sent`;
    throw new ContractError(message, { code: "context_failed", server, maybeExecuted: false, cause });
  };
  let fields: unknown;
  try {
    fields = context(runtime);
  } catch (error) {
    return fail(`threw: ${messageOf(error)}`, error);
  }
  return fields === undefined || (isRecord(fields) && !(fields instanceof Promise)) ? fields : fail("gave no object");
}
