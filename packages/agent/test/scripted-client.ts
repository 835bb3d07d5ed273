import type { ToolMessage } from "@langchain/core/messages";
import type { Command } from "@langchain/langgraph";
import type {
  CatalogTool,
  Client,
  ElicitationAnswer,
  ElicitationRequest,
  Leg,
  LogEvent,
  ProgressEvent,
  ToolCallOutcome,
  ToolCallRequest,
  ToolResult,
  WireResult,
} from "@tenon/client";
import { type JsonObject, ProtocolError } from "@tenon/core";
import { wrongFields } from "@tenon/core/internal";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import type { AgentClient, AgentInterceptor } from "../src/index.ts";

/** What reaches the scripted server: one entry per leg. */
export interface Sent {
  readonly tool: string;
  readonly args: Record<string, unknown>;
  readonly answers?: Record<string, ElicitationAnswer>;
  readonly state?: string;
  readonly meta: Record<string, unknown>;
  readonly signal: AbortSignal;
  progress(event: ProgressEvent): void;
  log(event: LogEvent): void;
}

export type Scripted =
  | { text?: string; structured?: unknown; isError?: boolean; meta?: Record<string, unknown> }
  | { ask: Record<string, ElicitationRequest>; state: string };

export interface ScriptedTool {
  readonly schema?: JsonObject;
  readonly annotations?: CatalogTool["annotations"];
  readonly run: (sent: Sent) => Scripted | Promise<Scripted>;
}

export interface ScriptedClient extends AgentClient {
  /** Every leg that was sent, in order. */
  readonly sent: Sent[];
}

export const yesNo = (message: string): ElicitationRequest => ({
  mode: "form",
  message,
  fields: [{ kind: "boolean", name: "ok", required: true }],
  schema: { type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"] },
});

/** What the modern era's error for an expired state looks like at a client. */
export function expiredState(reason = "expired"): ProtocolError {
  return new ProtocolError("server refused the request: the state has expired", {
    code: "refused",
    data: { code: -32602, message: "expired", data: { reason } },
  });
}

/** What a client answers for arguments that do not fit; undefined when they do. */
function misfit(schema: JsonObject, args: Readonly<Record<string, unknown>>): ToolResult | undefined {
  const compiled = schemaCheck(schema, "all");
  const verdict = compiled.fault ? undefined : compiled.check(args);
  if (verdict?.ok !== false) return undefined;
  const issues = wrongFields(verdict.issues, args, { whole: "arguments" });
  const text = `The arguments do not fit: ${issues.map(({ message }) => message).join("; ")}`;
  return {
    content: [{ type: "text", text }],
    isError: true,
    meta: {},
    raw: { content: [], isError: true },
    problem: { code: "invalid_arguments", data: { issues } },
  };
}

const closed = () => Promise.reject(new Error("not part of this script"));

/** A `Client` with one server, "shop", whose tools are functions; the loop over legs is the contract's. */
export function scriptedClient(
  tools: Record<string, ScriptedTool>,
  options: { elicitation?: Client["elicitation"]; interceptors?: readonly AgentInterceptor[] } = {},
): ScriptedClient {
  const sent: Sent[] = [];
  const catalog = Object.entries(tools).map(
    ([wireName, tool]): CatalogTool => ({
      name: `mcp_shop_${wireName}`,
      server: "shop",
      wireName,
      description: `Tool ${wireName}`,
      inputSchema: tool.schema ?? { type: "object", properties: {} },
      annotations: tool.annotations ?? {},
      meta: {},
    }),
  );

  const callTool: AgentClient["callTool"] = async (server, name, args = {}, call = {}) => {
    const signal = call.signal ?? new AbortController().signal;
    const send = async (request: ToolCallRequest, more: Pick<Sent, "answers" | "state">): Promise<WireResult> => {
      const tool = tools[request.name];
      if (!tool) throw new ProtocolError(`no tool ${request.name}`, { code: "refused" });
      const leg: Sent = {
        tool: request.name,
        args: { ...request.args },
        meta: { ...request.meta },
        signal,
        ...more,
        progress: (event) => call.onProgress?.(event, { server }),
        log: (event) => call.onLog?.(event, { server }),
      };
      sent.push(leg);
      const out = await tool.run(leg);
      if ("ask" in out) {
        return {
          resultType: "input_required",
          inputRequests: out.ask,
          requestState: out.state,
        } as unknown as WireResult;
      }
      return {
        content: out.text === undefined ? [] : [{ type: "text", text: out.text }],
        ...(out.structured !== undefined && { structuredContent: out.structured }),
        ...(out.isError && { isError: true }),
        ...(out.meta && { _meta: out.meta }),
      } as WireResult;
    };
    const base = async (request: ToolCallRequest): Promise<ToolResult> => {
      const wrong = misfit(tools[request.name]?.schema ?? { type: "object" }, request.args);
      if (wrong) return wrong;
      let more: Pick<Sent, "answers" | "state"> = {};
      for (let round = 0; ; round += 1) {
        const leg: Leg = { server, tool: request.name, args: request.args, round };
        const carried = more;
        const work = () => send(request, carried);
        const wire = (await (call.driver ? call.driver.leg(work, leg) : work())) as Record<string, unknown>;
        if (wire.resultType !== "input_required") {
          return {
            content: wire.content as ToolResult["content"],
            ...(wire.structuredContent !== undefined && { structured: wire.structuredContent }),
            isError: wire.isError === true,
            meta: (wire._meta ?? {}) as Record<string, unknown>,
            raw: wire as unknown as ToolResult["raw"],
          };
        }
        if (!call.driver?.answer) throw new ProtocolError("asked without a driver", { code: "no_driver" });
        const questions = wire.inputRequests as Record<string, ElicitationRequest>;
        more = { answers: await call.driver.answer(questions, leg), state: String(wire.requestState) };
      }
    };
    type Handler = (request: ToolCallRequest) => Promise<ToolCallOutcome<ToolMessage | Command>>;
    const requestOf = (fields: Omit<ToolCallRequest, "with" | "definition">): ToolCallRequest => ({
      ...fields,
      definition: async () => catalog.find(({ wireName }) => wireName === fields.name),
      with: (changes) =>
        requestOf({ ...fields, ...changes, headers: { ...fields.headers }, meta: { ...fields.meta, ...changes.meta } }),
    });
    const handler = [...(options.interceptors ?? [])]
      .reverse()
      .reduce<Handler>((next, interceptor) => (request) => interceptor(request, next), base);
    return handler(
      requestOf({
        server,
        name,
        callId: "call-1",
        args,
        headers: {},
        meta: call.meta ?? {},
        runtime: call.runtime ?? {},
        signal,
      }),
    );
  };

  return {
    sent,
    elicitation: options.elicitation ?? "interrupt",
    listTools: async (...servers) => (servers.length === 0 || servers.includes("shop") ? catalog : []),
    listPrompts: async () => [],
    listResources: async () => [],
    listResourceTemplates: async () => [],
    callTool,
    dispatch: closed,
    tasks: { start: closed, get: closed, answer: closed, cancel: closed, resume: closed },
    readResources: closed,
    getPrompt: closed,
    getContext: closed,
    servers: () => [],
    close: async () => {},
    [Symbol.asyncDispose]: async () => {},
  };
}
