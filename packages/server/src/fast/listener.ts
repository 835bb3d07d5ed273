import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { type Implementation, isJsonContentType } from "@modelcontextprotocol/server";
import { authorizationOf } from "../auth/bearer.ts";
import type { Admitted, Verdict } from "../auth/gate.ts";
import { checkParamHeaders, paramHeadersOf } from "../definition/param-headers.ts";
import type { Service } from "../dispatch/dispatch.ts";
import { offers } from "../dispatch/protocol.ts";
import type { Caller } from "../handler/context.ts";
import { parseBody } from "../http/body.ts";
import type { HttpSide } from "../http/http.ts";
import { mayBeInsufficient } from "../http/scope-check.ts";
import { FastExchange } from "./exchange.ts";
import { createAnswering } from "./outcome.ts";
import { type Recognised, recognise } from "./recognise.ts";
import { Reply } from "./reply.ts";
import { noteVerdict } from "./verdict.ts";

/** What the fast path works with. */
export interface FastOptions {
  readonly service: Service;
  readonly side: HttpSide;
  readonly identity: Implementation;
  /** Path of the endpoint. */
  readonly path: string;
  /** Answers everything else. A body that was read already is on the request as `rawBody`. */
  readonly otherwise: RequestListener;
}

/** Hosts that were checked already: parsing the same header for every request costs more than the call. */
const MAX_KNOWN_HOSTS = 64;

function readBody(request: IncomingMessage, limit: number, done: (body: Buffer | "too large") => void): void {
  const parts: Buffer[] = [];
  let size = 0;
  const onData = (part: Buffer): void => {
    size += part.length;
    if (size > limit) {
      request.off("data", onData).off("end", onEnd).resume();
      done("too large");
      return;
    }
    parts.push(part);
  };
  const onEnd = (): void => {
    const [only] = parts;
    done(parts.length === 1 && only ? only : Buffer.concat(parts, size));
  };
  request.on("data", onData).once("end", onEnd);
  // cut off before its end: nobody waits for an answer
  request.once("error", () => undefined);
}

/**
 * A request listener that answers plain, well-formed requests of both eras straight from the dispatcher: the body is parsed
 * once and the answer is one write. It exists because building a protocol instance, web requests, responses and streams for
 * every call costs ten times more than the call itself. Everything it does not recognise goes to `otherwise`.
 */
export function createFastListener({ service, side, identity, path, otherwise }: FastOptions): RequestListener {
  const outcomeOf = createAnswering(service, identity);
  const hosts = new Map<string, boolean>();

  function allows(host: string): boolean {
    let allowed = hosts.get(host);
    if (allowed === undefined) {
      if (hosts.size >= MAX_KNOWN_HOSTS) hosts.clear();
      allowed = side.allows(host, undefined);
      hosts.set(host, allowed);
    }
    return allowed;
  }

  async function run(
    known: Recognised,
    request: IncomingMessage,
    response: ServerResponse,
    session: string | undefined,
    caller: Caller | undefined,
  ): Promise<void> {
    const reply = new Reply(response, known.id);
    const outcome = await outcomeOf(known, new FastExchange(known, reply, session, request, caller));
    if ("json" in outcome) reply.result(outcome.json);
    else reply.error(outcome.status, outcome.error);
  }

  /** Whether the headers that repeat a tool's arguments agree; the protocol side words the refusal. */
  function paramsAgree({ era, method, params }: Recognised, request: IncomingMessage): boolean {
    if (era !== "modern" || method !== "tools/call") return true;
    const tool = service.registry.tools.get(String(params.name));
    const declared = tool ? paramHeadersOf(tool.listing.modern.inputSchema) : [];
    if (declared.length === 0) return true;
    const header = (name: string): string | undefined => request.headersDistinct[name]?.join(", ");
    return checkParamHeaders(declared, params.arguments, header) === undefined;
  }

  /** Whether a recognised request may be answered here: of a session only lists, since a call may have to ask back. */
  function mayAnswer(known: Recognised, session: string | undefined, caller: Caller | undefined): boolean {
    if (!offers(service.registry, known.method)) return false;
    // the protocol side words the refusal
    if (mayBeInsufficient(service.registry, known.method, known.params, caller)) return false;
    if (session === undefined || known.era === "modern") return true;
    return known.method.endsWith("/list") && side.sessions.has(session, caller);
  }

  /** Reads and answers a request of somebody who may come in. */
  function read(request: IncomingMessage, response: ServerResponse, admitted: Admitted | undefined): void {
    const { headers } = request;
    const caller = admitted?.caller;
    readBody(request, side.maxBodyBytes, (body) => {
      if (body === "too large") {
        const error = { code: -32000, message: `The request body is larger than ${side.maxBodyBytes} bytes` };
        response.writeHead(413, { "content-type": "application/json", connection: "close" });
        return response.end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
      }
      const parsed = parseBody(body.toString());
      const known = "value" in parsed ? recognise(headers, parsed.value) : undefined;
      const session = typeof headers["mcp-session-id"] === "string" ? headers["mcp-session-id"] : undefined;
      if (!known || !mayAnswer(known, session, caller) || !paramsAgree(known, request)) {
        if (admitted) noteVerdict(request, admitted);
        return otherwise(Object.assign(request, { rawBody: body }), response);
      }
      const within = known.era === "legacy" ? session : undefined;
      if (within !== undefined) side.sessions.touch(within);
      return void run(known, request, response, within, caller);
    });
  }

  /** The protocol side words the refusal of who may not come in. */
  function enter(request: IncomingMessage, response: ServerResponse, verdict: Verdict): void {
    if ("status" in verdict) {
      noteVerdict(request, verdict);
      otherwise(request, response);
    } else read(request, response, verdict);
  }

  return (request, response) => {
    const { headers, url = "" } = request;
    const plain =
      request.method === "POST" &&
      (url === path || url.startsWith(`${path}?`)) &&
      isJsonContentType(headers["content-type"] ?? null) &&
      headers["content-encoding"] === undefined &&
      Number(headers["content-length"] ?? 0) <= side.maxBodyBytes &&
      headers.origin === undefined && // a page's: its answer needs headers of its own
      headers.host !== undefined &&
      allows(headers.host);
    if (!plain) return otherwise(request, response);
    const { front } = side;
    if (!front) return read(request, response, undefined);
    const verdict = front.admit(authorizationOf(request.rawHeaders), url);
    if (verdict instanceof Promise) void verdict.then((found) => enter(request, response, found));
    else enter(request, response, verdict);
  };
}
