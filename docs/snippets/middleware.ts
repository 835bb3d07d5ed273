import assert from "node:assert/strict";
import type { Caller, LogEntry, TenonServer } from "@tenon/server";

const lines: LogEntry[] = [];
const rates = { today: async () => 7.1 };
let opened = 8;

// #region first
import { createServer } from "@tenon/server";
import { authorize, cache, log, matchCaller, rateLimit, timing } from "@tenon/server/middleware";
import { z } from "zod";

const server = createServer({ name: "bank", version: "1.0.0", logSink: (entry) => lines.push(entry) });
server.use(
  log(), // outermost: sees every request and how it ended
  timing(),
  rateLimit({ limit: 60, windowMs: 60_000 }),
  authorize(({ name, caller }) => name !== "pay" || caller?.scopes.includes("pay") === true || "Paying needs a clerk"),
  matchCaller({ argument: "clerk_id" }), // what a call says about its caller must fit its token
  cache({ ttlMs: 5_000 }), // innermost: keeps what handlers of read-only tools return
);
server.tool("rate", { annotations: { readOnlyHint: true } }, () => rates.today());
server.tool("pay", { input: z.object({ clerk_id: z.string().optional() }) }, () => "paid");

// #endregion

// #region own
import { type Middleware, ToolError } from "@tenon/server";

const openingHours: Middleware = async (request, next) => {
  if (request.target?.kind === "tool" && !request.target.readOnly && opened > 18) {
    throw new ToolError("The bank is closed; try again at eight");
  }
  const result = await next();
  return { ...result, _meta: { ...result._meta, "example.com/opened": opened } };
};
server.use(openingHours);
// #endregion

async function call(to: TenonServer, name: string, caller?: Caller, args: object = {}): Promise<string> {
  const headers = {
    host: "127.0.0.1",
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } });
  const request = new Request("http://127.0.0.1/mcp", { method: "POST", headers, body });
  return (await to.fetch(request, caller && { caller })).text();
}
const clerk: Caller = { subject: "clerk", scopes: ["pay"], claims: {} };
const first = await call(server, "rate");
assert.match(first, /7\.1/);
assert.match(first, /"dev\.tenon\/duration-ms":/);
rates.today = async () => 8;
assert.match(await call(server, "rate"), /7\.1/); // from the cache
assert.match(await call(server, "pay"), /Paying needs a clerk/);
assert.match(await call(server, "pay", clerk), /"paid"/);
assert.match(await call(server, "pay", clerk, { clerk_id: "boss" }), /boss.. is not the caller/);
opened = 22;
assert.match(await call(server, "pay", clerk), /The bank is closed/);
assert.deepEqual(
  lines.map(({ message, name }) => `${message} ${name}`),
  [
    "tools/call ok rate",
    "tools/call ok rate",
    "tools/call refused pay",
    "tools/call ok pay",
    "tools/call refused pay",
    "tools/call refused pay",
  ],
);
await server.close();
