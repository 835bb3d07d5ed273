import type { Caller, TenonServer } from "../src/index.ts";

export interface Reply {
  result?: Record<string, unknown> & { content?: Array<{ type: string; text: string }>; isError?: boolean };
  error?: { code: number; message: string; data?: Record<string, unknown> };
}

/** Any server, whatever its lifespan. */
type Asked = Pick<TenonServer, "fetch">;

/** One message of a JSON body or an event stream: the response to the request. */
async function readReply(response: Response): Promise<Reply> {
  const body = await response.text();
  const lines = /^data:/m.test(body) ? [...body.matchAll(/^data: ?(.+)$/gm)].map(([, data]) => data ?? "") : [body];
  const messages = lines.map((line) => JSON.parse(line) as Reply & { id?: unknown });
  const reply = messages.findLast((message) => "result" in message || "error" in message);
  if (!reply) throw new Error(`no response in ${body}`);
  return reply;
}

/** Sends one request to a server in this process, without a socket, as a caller with a verified token or as nobody. */
export async function ask(
  server: Asked,
  method: string,
  params: Record<string, unknown> = {},
  { caller, era = "modern", signal }: { caller?: Caller; era?: "modern" | "legacy"; signal?: AbortSignal } = {},
): Promise<Reply> {
  const modern = era === "modern";
  const name = params.name ?? params.uri;
  const request = new Request("http://127.0.0.1/mcp", {
    method: "POST",
    ...(signal && { signal }),
    headers: {
      host: "127.0.0.1",
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": modern ? "2026-07-28" : "2025-11-25",
      ...(modern && { "mcp-method": method, ...(typeof name === "string" && { "mcp-name": name }) }),
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method,
      params: modern
        ? {
            ...params,
            _meta: {
              "io.modelcontextprotocol/protocolVersion": "2026-07-28",
              "io.modelcontextprotocol/clientInfo": { name: "raw", version: "1" },
              "io.modelcontextprotocol/clientCapabilities": { elicitation: { form: {} } },
              ...(params._meta as object),
            },
          }
        : params,
    }),
  });
  return readReply(await server.fetch(request, caller && { caller }));
}

/** Calls a tool. */
export function call(
  server: Asked,
  name: string,
  args: unknown = {},
  options: Parameters<typeof ask>[3] = {},
): Promise<Reply> {
  return ask(server, "tools/call", { name, arguments: args }, options);
}

/** The text of a tool's answer. */
export function said(reply: Reply): string {
  return reply.result?.content?.map((block) => block.text).join("\n") ?? `error: ${reply.error?.message}`;
}

/** The names a list shows. */
export async function listed(
  server: Asked,
  kind: "tools" | "prompts" | "resources" | "resourceTemplates",
  options: Parameters<typeof ask>[3] = {},
): Promise<string[]> {
  const method = kind === "resourceTemplates" ? "resources/templates/list" : `${kind}/list`;
  const { result } = await ask(server, method, {}, options);
  const items = (result?.[kind] ?? []) as Array<{ name: string; uri?: string; uriTemplate?: string }>;
  return items.map((item) => item.uri ?? item.uriTemplate ?? item.name);
}

export const alice: Caller = { subject: "alice", scopes: ["orders:read"], claims: {} };
export const root: Caller = { subject: "root", scopes: ["orders:read", "orders:refund"], claims: { role: "admin" } };
