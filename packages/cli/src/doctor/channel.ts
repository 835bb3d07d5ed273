import type { Route } from "@tenon/client/internal";
import { isRecord, META } from "@tenon/core";
import { MODERN_REVISION } from "@tenon/core/internal";
import { type Answer, send } from "./http.ts";
import { checkContentType, explainAnswer } from "./http-findings.ts";
import { textOf } from "./json.ts";
import type { Place } from "./net.ts";
import type { Visit } from "./visit.ts";

type Json = Record<string, unknown>;

/** What came of one JSON-RPC request. */
export type Reply =
  | { readonly kind: "result"; readonly value: Readonly<Json> }
  | { readonly kind: "error"; readonly code: number; readonly message: string; readonly data: unknown }
  | {
      /** No message of the protocol. */
      readonly kind: "none";
      /** Whether asking in another revision is of no use. */
      readonly final: boolean;
      /** Nothing came, as opposed to something wrong. */
      readonly silent: boolean;
      /** @throws Diagnosis always */
      explain(): Promise<never>;
    };

/** The revision that a request is made in. */
export interface Speech {
  readonly revision: string;
  readonly modern: boolean;
}

/** A way to send JSON-RPC requests to one server, over HTTP or to a process. */
export interface Channel {
  /** @param ms longest wait */
  ask(method: string, params: Json, speech: Speech, ms: number): Promise<Reply>;
  notify(method: string, speech: Speech): Promise<void>;
  /** Says goodbye: ends the session or the process. Never throws. */
  close(): Promise<void>;
}

/** What the layers over HTTP know about where they are. */
export interface Wire {
  readonly visit: Visit;
  readonly route: Route;
  readonly place: Place;
  /** Without the revision and the message: what the user gave. */
  readonly headers: Readonly<Record<string, string>>;
  /** The token that is sent, where one is. */
  readonly token: string | undefined;
  /** Asks an address whether MCP is spoken there. */
  probe(url: URL, ms: number): Promise<Answer>;
}

const CLIENT = { name: "tenon-doctor", version: "1" };
const MAX_REDIRECTS = 3;
const CLOSE_MS = 300;

/** Parameters as a revision and the contract want them. */
export function paramsFor(visit: Visit, params: Json, { modern, revision }: Speech, isHandshake: boolean): Json {
  const { context } = visit.options;
  const meta = {
    ...(modern && {
      "io.modelcontextprotocol/protocolVersion": revision,
      "io.modelcontextprotocol/clientCapabilities": {},
      "io.modelcontextprotocol/clientInfo": CLIENT,
    }),
    ...(isHandshake && { [META.contract]: "0.4.2" }),
    ...(context !== undefined && { [META.context]: context }),
  };
  return Object.keys(meta).length === 0 ? params : { ...params, _meta: meta };
}

/** Parameters of `initialize`. */
export const initializeParams = (revision: string): Json => ({
  protocolVersion: revision,
  capabilities: {},
  clientInfo: CLIENT,
});

/** A message as a reply. */
export function replyOf(message: Readonly<Json>): Reply {
  const { error, result } = message;
  if (isRecord(error)) {
    return {
      kind: "error",
      code: typeof error.code === "number" ? error.code : Number.NaN,
      message: textOf(error.message ?? ""),
      data: error.data,
    };
  }
  return { kind: "result", value: isRecord(result) ? result : {} };
}

const isHandshake = (method: string): boolean => method === "initialize" || method === "server/discover";

const ACCEPT = { "content-type": "application/json", accept: "application/json, text/event-stream" };
/** Their meaning does not depend on what the body says. */
const OWN_MEANING = new Set([401, 403, 405, 406, 407, 415, 429]);

/** An HTTP status after which another revision is not worth a try. */
const isFinal = (answer: Answer): boolean =>
  answer.kind === "failed" || (answer.kind === "answer" && [401, 403, 407, 429].includes(answer.status));

/** JSON-RPC over HTTP, one request each. */
export function httpChannel(base: Omit<Wire, "probe">, endpoint: URL): Channel & { readonly wire: Wire } {
  const { visit, route } = base;
  let url = endpoint;
  let session: string | undefined;
  let ids = 0;

  const post = (to: URL, body: Json, headers: Record<string, string>, ms: number): Promise<Answer> =>
    send(visit, route, {
      method: "POST",
      url: to,
      headers: { ...ACCEPT, ...headers, ...base.headers },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
      ...(typeof body.id === "number" && { id: body.id }),
      ms,
    });

  const headersFor = (method: string, { revision, modern }: Speech): Record<string, string> => ({
    ...(method !== "initialize" && { "mcp-protocol-version": revision }),
    ...(modern && { "mcp-method": method }),
    ...(session !== undefined && { "mcp-session-id": session }),
  });

  /** Follows what clients follow: the same server, another path. */
  const followed = async (body: Json, headers: Record<string, string>, ms: number): Promise<Answer> => {
    for (let hops = 0; ; hops++) {
      const answer = await post(url, body, headers, ms);
      if (answer.kind !== "answer" || answer.status < 300 || answer.status >= 400) return answer;
      const { location = "" } = answer.headers;
      const to = URL.canParse(location, url.href) ? new URL(location, url) : undefined;
      if (!to || to.origin !== url.origin || answer.status === 303 || hops >= MAX_REDIRECTS) return answer;
      if (to.href === url.href) return answer;
      if (hops === 0 && !visit.findings.some(({ code }) => code === "redirect_followed")) {
        visit.note("redirect_followed", { evidence: `HTTP ${answer.status} to ${to.pathname}` });
      }
      url = to;
    }
  };

  const wire: Wire = {
    ...base,
    probe: (to, ms) => {
      const speech = { revision: MODERN_REVISION, modern: true };
      const params = paramsFor(visit, {}, speech, true);
      return post(to, { id: ++ids, method: "server/discover", params }, headersFor("server/discover", speech), ms);
    },
  };

  return {
    wire,
    async ask(method, params, speech, ms) {
      const id = ++ids;
      const body = { id, method, params: paramsFor(visit, params, speech, isHandshake(method)) };
      const answer = await followed(body, headersFor(method, speech), ms);
      const none: Reply = {
        kind: "none",
        final: isFinal(answer),
        silent: answer.kind === "silent",
        explain: () => explainAnswer(wire, answer, method),
      };
      if (answer.kind !== "answer" || !answer.message || OWN_MEANING.has(answer.status)) return none;
      checkContentType(wire, answer);
      const given = answer.headers["mcp-session-id"];
      if (method === "initialize" && given !== undefined) session = given;
      return replyOf(answer.message);
    },
    async notify(method, speech) {
      await post(url, { method }, headersFor(method, speech), 1_000);
    },
    async close() {
      if (session === undefined) return;
      await send(visit, route, {
        method: "DELETE",
        url,
        headers: { ...base.headers, "mcp-session-id": session },
        ms: CLOSE_MS,
      });
    },
  };
}
