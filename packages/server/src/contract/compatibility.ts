import { type Implementation, ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import { isRecord, type JsonObject, META } from "@tenon/core";
import { CONTRACT_VERSIONS } from "@tenon/core/contract";
import { countNegotiation } from "@tenon/core/internal";
import { shownHeaders } from "../auth/bearer.ts";
import { type Service, throughMiddleware } from "../dispatch/dispatch.ts";
import { createAnswering, type Outcome } from "../fast/outcome.ts";
import type { Caller, Exchange } from "../handler/context.ts";
import { remoteAddressOf } from "../http/remote-address.ts";
import { type Contract, contextRefusal } from "./contract.ts";
import { versionAsked } from "./declaring.ts";
import type { CompatibilityEndpoint } from "./endpoints.ts";

/** A request to one of the endpoints, past the checks that every request over HTTP goes through. */
export interface CompatibilityRequest {
  readonly endpoint: CompatibilityEndpoint;
  readonly request: Request;
  readonly caller: Caller | undefined;
  /** The refusal of a token that lacks scopes for a message of the protocol. */
  insufficient(message: unknown): Response | undefined;
}

/** Answers the endpoints of older clients from the same dispatcher. */
export interface Compatibility {
  /** @param body as it was parsed */
  answer(request: CompatibilityRequest, body: unknown): Promise<Response>;
}

/** What older write-ups call the methods. */
const METHODS: Readonly<Record<CompatibilityEndpoint, readonly string[]>> = {
  handshake: ["mcp.handshake"],
  "tools/execute": ["mcp.tools.execute", "tools.execute", "tools/execute"],
  "resources/list": ["mcp.resources.list", "resources.list", "resources/list"],
  "contexts/get": ["mcp.contexts.get", "contexts.get", "contexts/get"],
};

/** Codes of older write-ups, which the revision has reserved for other things: they are said here and nowhere else. */
const CONTEXT_CODES: Readonly<Record<string, number>> = {
  missing_context_field: -32001,
  invalid_context_value: -32002,
};
const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;

type Id = string | number | null;
interface Failure {
  readonly code: number;
  readonly message: string;
  readonly data?: unknown;
}
/** A request with its envelope read, or what is wrong with it. */
type Read =
  | { readonly jsonrpc: string; readonly id: Id; readonly params: Record<string, unknown> }
  | { readonly jsonrpc: string; readonly id: Id; readonly status: number; readonly failure: Failure };

const isId = (id: unknown): id is Id => id === null || typeof id === "string" || Number.isSafeInteger(id);

/** Reads an envelope; of the endpoints that also take the bare parameters, an object without one is these. */
function readEnvelope(endpoint: CompatibilityEndpoint, body: unknown): Read {
  const wrong = (problem: string, jsonrpc = "2.0", id: Id = null): Read => {
    const failure = { code: INVALID_REQUEST, message: `Invalid Request: ${problem}` };
    return { jsonrpc, id, status: 400, failure };
  };
  if (!isRecord(body)) return wrong("expected a JSON object");
  if (endpoint !== "handshake" && !("jsonrpc" in body) && !("method" in body)) {
    return { jsonrpc: "2.0", id: null, params: body };
  }
  const { jsonrpc, method, id = null, params = {} } = body;
  if (jsonrpc !== "2.0" && jsonrpc !== "3.0") return wrong('jsonrpc must be "2.0" or "3.0"');
  if (!isId(id)) return wrong("id must be a text or a whole number", jsonrpc);
  if (typeof method !== "string") return wrong("method must be a text", jsonrpc, id);
  if (!METHODS[endpoint].includes(method)) {
    const [expected] = METHODS[endpoint];
    const message = `Method not found: ${method.slice(0, 100)}; this endpoint answers ${expected}`;
    return { jsonrpc, id, status: 200, failure: { code: METHOD_NOT_FOUND, message } };
  }
  if (!isRecord(params)) {
    const failure = { code: ProtocolErrorCode.InvalidParams, message: "params must be an object" };
    return { jsonrpc, id, status: 200, failure };
  }
  return { jsonrpc, id, params };
}

/** What went wrong, with the codes of older write-ups where it is about the context. */
function failureOf(error: unknown): Failure {
  if (!(error instanceof ProtocolError)) throw error;
  const { code, message, data } = error;
  return asOlder({ code, message, ...(data !== undefined && { data }) });
}

function asOlder(failure: Failure): Failure {
  const reason = isRecord(failure.data) ? failure.data.reason : undefined;
  const code = typeof reason === "string" ? CONTEXT_CODES[reason] : undefined;
  return code === undefined ? failure : { ...failure, code };
}

const invalidParams = (message: string): ProtocolError => new ProtocolError(ProtocolErrorCode.InvalidParams, message);

function objectIn(params: Record<string, unknown>, name: string): Record<string, unknown> {
  const value = params[name] ?? {};
  if (!isRecord(value)) throw invalidParams(`${name} must be an object`);
  return value;
}

/** @param identity that results of the protocol carry */
export function createCompatibility(service: Service, contract: Contract, identity: Implementation): Compatibility {
  const outcomeOf = createAnswering(service, identity);

  function versionOf(params: Record<string, unknown>) {
    const version = versionAsked(params.protocol_version ?? params.version);
    if (version) return version;
    throw new ProtocolError(METHOD_NOT_FOUND, "Unsupported protocol version", { supported: [...CONTRACT_VERSIONS] });
  }

  /** @throws ProtocolError where the context is not what the contract says */
  function checkContext(context: unknown, caller: Caller | undefined): void {
    const fault = contract.fault(context, caller);
    if (fault) throw contextRefusal(fault);
  }

  function handshake(params: Record<string, unknown>, caller: Caller | undefined): JsonObject {
    const version = versionOf(params);
    if (params.context !== undefined) checkContext(params.context, caller);
    const { server_id, capabilities, context_schema, authentication, next_rotation_time } =
      contract.declaration(version);
    const signed = { server_id, version, capabilities: [...capabilities], context_schema };
    const signature = contract.plainSignature(signed);
    return {
      ...signed,
      protocol_version: version,
      authentication: authentication ?? { type: "none" },
      ...(signature !== undefined && { signature }),
      ...(next_rotation_time !== undefined && { next_rotation_time }),
    };
  }

  function countedHandshake(params: Record<string, unknown>, caller: Caller | undefined): JsonObject {
    try {
      const answer = handshake(params, caller);
      countNegotiation("server", String(answer.version));
      return answer;
    } catch (error) {
      countNegotiation("server", "refused");
      throw error;
    }
  }

  function exchangeOf(id: Id, params: Record<string, unknown>, { request, caller }: CompatibilityRequest): Exchange {
    const silent = async (): Promise<void> => undefined;
    const { context } = params;
    return {
      era: "legacy",
      requestId: id ?? 0,
      signal: request.signal,
      meta: { ...(context !== undefined && { [META.context]: context }), [META.contract]: versionOf(params) },
      headers: shownHeaders(request.headers, { authenticated: service.authenticated, caller }),
      remoteAddress: remoteAddressOf(request),
      caller,
      client: { capabilities: {} },
      notify: silent,
      log: silent,
    };
  }

  /** Lets the dispatcher answer what the protocol calls a request so. */
  async function through(
    method: "tools/call" | "resources/list",
    given: Record<string, unknown>,
    id: Id,
    params: Record<string, unknown>,
    of: CompatibilityRequest,
  ): Promise<Outcome | Response> {
    const exchange = exchangeOf(id, params, of);
    checkContext(params.context, of.caller);
    const refused = of.insufficient({ jsonrpc: "2.0", id, method, params: given });
    if (refused) return refused;
    const { era, client, meta } = exchange;
    return outcomeOf(
      { era, id: exchange.requestId, method, params: given, meta, client, logLevel: undefined },
      exchange,
    );
  }

  async function lastContext(id: Id, params: Record<string, unknown>, of: CompatibilityRequest): Promise<Result> {
    const exchange = exchangeOf(id, params, of);
    if (params.context !== undefined) checkContext(params.context, of.caller);
    const given = { session_id: params.session_id ?? objectIn(params, "arguments").session_id };
    contract.admit("contexts/get", exchange);
    return throughMiddleware(service, "contexts/get", given, exchange, (inner) =>
      service.extensions.call("contexts/get", inner, exchange, service.lifespan),
    );
  }

  async function outcome(
    id: Id,
    params: Record<string, unknown>,
    of: CompatibilityRequest,
  ): Promise<Outcome | Response> {
    switch (of.endpoint) {
      case "handshake":
        return { json: JSON.stringify(countedHandshake(params, of.caller)) };
      case "tools/execute": {
        const { tool_name } = params;
        if (typeof tool_name !== "string") throw invalidParams("tool_name must be a text");
        return through("tools/call", { name: tool_name, arguments: objectIn(params, "arguments") }, id, params, of);
      }
      case "resources/list": {
        const { cursor } = params;
        if (cursor !== undefined && typeof cursor !== "string") throw invalidParams("cursor must be a text");
        return through("resources/list", cursor === undefined ? {} : { cursor }, id, params, of);
      }
      case "contexts/get":
        return { json: JSON.stringify(await lastContext(id, params, of)) };
    }
  }

  return {
    async answer(of, body) {
      const read = readEnvelope(of.endpoint, body);
      const { jsonrpc, id } = read;
      const reply = (status: number, part: string): Response =>
        new Response(`{"jsonrpc":${JSON.stringify(jsonrpc)},"id":${JSON.stringify(id)},${part}}`, {
          status,
          headers: { "content-type": "application/json", "cache-control": "no-store" },
        });
      const failed = (failure: Failure, status = 200): Response => reply(status, `"error":${JSON.stringify(failure)}`);
      if ("failure" in read) return failed(read.failure, read.status);
      try {
        const found = await outcome(id, read.params, of);
        if (found instanceof Response) return found;
        return "json" in found ? reply(200, `"result":${found.json.toString()}`) : failed(asOlder(found.error));
      } catch (error) {
        return failed(failureOf(error));
      }
    },
  };
}
