import { type Answer, envelope, legacy, META, modern, type Raw } from "./raw-requests.ts";

/** What differs from run to run, and what may differ in wording but not in kind. */
export function comparable({ status, messages }: Answer): unknown {
  const text = JSON.stringify({ status, messages })
    .replace(/reference [2-9A-Z]{6}/g, "reference X")
    .replace(/"requestState":"[^"]+"/g, '"requestState":"X"')
    .replace(/(Invalid tools\/call result): (?:[^"\\]|\\.)*/g, "$1")
    .replace(/(Cannot request input '\w+' \([a-z/]+\)): (?:[^"\\]|\\.)*/g, "$1");
  return JSON.parse(text);
}

const asks = { [META.capabilities]: { elicitation: { form: {} } } };
/** Parameters of a call. */
export const call = (name: string, args: object = {}): Record<string, unknown> => ({ name, arguments: args });
const without = (raw: Raw, ...names: string[]): Raw => ({
  ...raw,
  headers: Object.fromEntries(Object.entries(raw.headers ?? {}).filter(([name]) => !names.includes(name))),
});
const post = (body: unknown, headers: Record<string, string> = {}): Raw => ({
  headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
  body: typeof body === "string" ? body : JSON.stringify(body),
});

/** The same on both eras. */
export const both = (send: typeof legacy): Record<string, Raw> => ({
  "a call": send("tools/call", call("add", { a: 1, b: 2 })),
  "a call without arguments": send("tools/call", { name: "both" }),
  "a declared output": send("tools/call", call("order", { id: "A" })),
  "a scalar output": send("tools/call", call("count")),
  "an array": send("tools/call", call("list")),
  "an unusual id": send("tools/call", call("count"), { message: { id: "__proto__" } }),
  "wrong arguments": send("tools/call", call("add", { a: "x" })),
  "arguments that are no object": send("tools/call", { name: "add", arguments: "x" }),
  "a tool error": send("tools/call", call("refuse")),
  "a masked error": send("tools/call", call("leak")),
  "a value that is no JSON": send("tools/call", call("nan")),
  "an unknown tool": send("tools/call", call("ordr")),
  "a call without a name": send("tools/call", { arguments: {} }),
  "prototype keys": send("tools/call", call("constructor")),
  "images and files": send("tools/call", call("parts")),
  "a result built by hand": send("tools/call", call("built")),
  "a result built wrong": send("tools/call", call("misbuilt")),
  "a question the client cannot answer": send("tools/call", call("buy", { item: "tea" })),
  "a resource that asks a client that cannot": send("resources/read", { uri: "ask://me" }),
  "a prompt that asks a client that cannot": send("prompts/get", { name: "ask" }),
  "a resource": send("resources/read", { uri: "company://policies/return" }),
  "a resource with a hint": send("resources/read", { uri: "news://today" }),
  "a template": send("resources/read", { uri: "order://u/o/detail" }),
  "no such resource": send("resources/read", { uri: "company://none" }),
  "a prompt": send("prompts/get", call("reply", { id: "7" })),
  "a prompt without its argument": send("prompts/get", call("reply")),
  "a prompt argument that is no text": send("prompts/get", call("reply", { id: 7 })),
  "an unknown prompt": send("prompts/get", call("nope")),
  tools: send("tools/list"),
  prompts: send("prompts/list"),
  resources: send("resources/list"),
  templates: send("resources/templates/list"),
  "a forged cursor": send("tools/list", { cursor: "WyJ0b29scy9saXN0Il0.AAAA" }),
  "an empty cursor": send("tools/list", { cursor: "" }),
  "a cursor that is no text": send("tools/list", { cursor: 7 }),
  "an unknown method": send("tools/nope"),
  "an unknown parameter": send("tools/call", { ...call("count"), extra: 1 }),
  "a ping": send("ping"),
  "no id": send("notifications/initialized", {}, { message: { id: undefined } }),
  "a null id": send("tools/list", {}, { message: { id: null } }),
  "a broken id": send("tools/list", {}, { message: { id: 1.5 } }),
  "a foreign member": send("tools/list", {}, { message: { extra: true } }),
  "another JSON-RPC": send("tools/list", {}, { message: { jsonrpc: "1.0" } }),
  "params that are a list": send("tools/list", {}, { message: { params: [] } }),
  "a foreign origin": send("tools/list", {}, { headers: { origin: "http://evil.example" } }),
  "a foreign host": send("tools/list", {}, { headers: { host: "evil.example" } }),
  "an encoded body": send("tools/list", {}, { headers: { "content-type": "text/plain" } }),
  "a content type that only begins like JSON": send(
    "tools/list",
    {},
    { headers: { "content-type": "application/json-x" } },
  ),
  "a content type with a charset": send(
    "tools/list",
    {},
    { headers: { "content-type": "application/json; charset=utf-8" } },
  ),
});

export const onlyModern: Record<string, Raw> = {
  "a question": modern("tools/call", call("buy", { item: "tea" }), { meta: asks }),
  "a resource that asks": modern("resources/read", { uri: "ask://me" }, { meta: asks }),
  "a prompt that asks": modern("prompts/get", { name: "ask" }, { meta: asks }),
  "a question for a client with bare elicitation": modern("tools/call", call("buy", { item: "tea" }), {
    meta: { [META.capabilities]: { elicitation: {} } },
  }),
  "a question for a client that opens addresses only": modern("tools/call", call("buy", { item: "tea" }), {
    meta: { [META.capabilities]: { elicitation: { url: {} } } },
  }),
  "a forged state": modern("tools/call", { ...call("buy", { item: "tea" }), requestState: "x" }, { meta: asks }),
  "a state that is no text": modern("tools/call", { ...call("buy", { item: "tea" }), requestState: 7 }, { meta: asks }),
  progress: modern("tools/call", call("slow", { steps: 3 }), { meta: { progressToken: "p" } }),
  "progress with a token of 0": modern("tools/call", call("slow", { steps: 2 }), { meta: { progressToken: 0 } }),
  "a broken progress token": modern("tools/call", call("slow", { steps: 2 }), { meta: { progressToken: {} } }),
  "log messages": modern("tools/call", call("slow", { steps: 2 }), { meta: { [META.level]: "debug" } }),
  "log messages of a level": modern("tools/call", call("slow", { steps: 2 }), { meta: { [META.level]: "error" } }),
  "a level that is none": modern("tools/call", call("slow", { steps: 2 }), { meta: { [META.level]: "loud" } }),
  discovery: modern("server/discover"),
  "no client info": modern("tools/call", call("whoami"), { meta: { [META.info]: undefined } }),
  "client info with more": modern("tools/call", call("whoami"), {
    meta: { [META.info]: { name: "n", version: "1", title: "T", icons: [{ src: "https://a.example/i.png" }] } },
  }),
  "client info that is none": modern("tools/call", call("whoami"), { meta: { [META.info]: { name: 7 } } }),
  "no capabilities": modern("tools/call", call("whoami"), { meta: { [META.capabilities]: undefined } }),
  "capabilities that are none": modern("tools/call", call("whoami"), { meta: { [META.capabilities]: [] } }),
  "unusual capabilities": modern("tools/call", call("whoami"), {
    meta: { [META.capabilities]: { extensions: { "a/b": { deep: [1] } }, roots: { listChanged: true }, new: 1 } },
  }),
  "broken capabilities": modern("tools/call", call("whoami"), { meta: { [META.capabilities]: { sampling: 1 } } }),
  "another revision": modern("tools/list", {}, { meta: { [META.version]: "2099-01-01" } }),
  "another revision in header and body": modern(
    "tools/list",
    {},
    {
      meta: { [META.version]: "2099-01-01" },
      headers: { "mcp-protocol-version": "2099-01-01" },
    },
  ),
  "no envelope": post(
    { jsonrpc: "2.0", id: 1, method: "tools/list" },
    { "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list" },
  ),
  "no version header": without(modern("tools/list"), "mcp-protocol-version"),
  "no method header": without(modern("tools/list"), "mcp-method"),
  "no name header": without(modern("tools/call", call("count")), "mcp-name"),
  "another method in the header": modern("tools/list", {}, { headers: { "mcp-method": "tools/call" } }),
  "another name in the header": modern("tools/call", call("count"), { headers: { "mcp-name": "add" } }),
  "a name in base64": modern("tools/call", call("count"), { headers: { "mcp-name": "=?base64?Y291bnQ=?=" } }),
  "a name in broken base64": modern("tools/call", call("count"), { headers: { "mcp-name": "=?base64?Y291bnQ?=" } }),
  "a session id, which means nothing": modern("tools/list", {}, { headers: { "mcp-session-id": "x" } }),
  "no accept": without(modern("tools/list"), "accept"),
  "a trace": modern("tools/call", call("trace"), {
    meta: {
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
      tracestate: "a=b",
      baggage: "k=v",
      own: 1,
    },
    headers: { "x-custom": "yes" },
  }),
  "a broken trace": modern("tools/call", call("trace"), { meta: { traceparent: "00-0-0-01", tracestate: "a=b" } }),
  "repeated arguments": modern("tools/call", call("regional", { region: "eu", n: 42 }), {
    headers: { "mcp-param-region": "eu", "mcp-param-n": "42.0" },
  }),
  "a repeated argument in base64": modern("tools/call", call("regional", { region: "é" }), {
    headers: { "mcp-param-region": "=?base64?w6k=?=" },
  }),
  "arguments that are not repeated": modern("tools/call", call("regional", { region: "eu" })),
  "arguments repeated wrong": modern("tools/call", call("regional", { region: "eu", n: 42 }), {
    headers: { "mcp-param-region": "us", "mcp-param-n": "42" },
  }),
  "a header for an absent argument": modern("tools/call", call("regional"), { headers: { "mcp-param-region": "us" } }),
  "a batch": post([{ jsonrpc: "2.0", id: 1, method: "tools/list", params: { _meta: envelope() } }]),
};

export const onlyLegacy: Record<string, Raw> = {
  progress: legacy("tools/call", { ...call("slow", { steps: 3 }), _meta: { progressToken: 7 } }),
  "log messages": legacy("tools/call", call("slow", { steps: 1 })),
  "no version header": without(legacy("tools/list"), "mcp-protocol-version"),
  "an older revision": legacy("tools/list", {}, { headers: { "mcp-protocol-version": "2025-03-26" } }),
  "an unknown revision": legacy("tools/list", {}, { headers: { "mcp-protocol-version": "1999-01-01" } }),
  "no accept": without(legacy("tools/list"), "accept"),
  "accept without a stream": legacy("tools/list", {}, { headers: { accept: "application/json" } }),
  "an unknown session": legacy("tools/list", {}, { headers: { "mcp-session-id": "nope" } }),
  "an answer to nothing": post({ jsonrpc: "2.0", id: 1, result: {} }),
  "a batch": post([
    { jsonrpc: "2.0", id: 1, method: "tools/list" },
    { jsonrpc: "2.0", id: 2, method: "ping" },
  ]),
  "an empty batch": post([]),
  "no JSON": post("{"),
  nothing: post(""),
  "a number": post("7"),
  null: post("null"),
  GET: { method: "GET", headers: { accept: "text/event-stream" } },
  DELETE: { method: "DELETE" },
  PUT: { method: "PUT", headers: { "content-type": "application/json" }, body: "{}" },
};
