import assert from "node:assert/strict";

// #region first
import { createServer } from "@tenon/server";
import { openTelemetry } from "@tenon/telemetry";

const telemetry = await openTelemetry({ serviceName: "orders" }); // traces where OTEL_EXPORTER_OTLP_ENDPOINT says
const server = createServer({ name: "orders", version: "1.0.0" });
server.tool("ping", {}, () => "pong");

const { url } = await server.listen({ port: 0 });
const admin = await server.admin({ port: 0, metrics: telemetry }); // /metrics, /healthz and /readyz

// #endregion

import { createClient } from "@tenon/client";

// #region content
const client = createClient({
  servers: { orders: { url } },
  telemetry: { content: { keys: ["password", "iban"], patterns: ["bearer", "jwt", "email"] } }, // true: the default rules
});
await client.callTool("orders", "ping", { iban: "DE89…" });
// #endregion

const text = await (await fetch(`${admin.url}/metrics`)).text();
assert.match(text, /^tenon_tool_calls_total\{server="orders",tool="ping",outcome="ok",side="server"\} 1$/m);
assert.match(text, /^process_cpu_seconds_total /m);
assert.equal((await fetch(new URL("/metrics", url))).status, 404);

// #region own
import { trace } from "@opentelemetry/api";

const tracer = trace.getTracer("orders");
server.tool("reconcile", {}, () =>
  tracer.startActiveSpan("read the ledger", async (span) => {
    span.setAttribute("ledger.rows", 12); // a child of the request's span
    span.end();
    return "done";
  }),
);
// #endregion

await client.callTool("orders", "reconcile");
await client.close();
await server.close();

// #region client
import { createServer as createHttpServer } from "node:http";

const page = createHttpServer(async (_, response) => response.end(await telemetry.text()));
page.listen(0, "127.0.0.1"); // a port of your choice; it has no sign-in, so keep it on this machine
// #endregion
await new Promise((resolve) => page.once("listening", resolve));
const { port } = page.address() as { port: number };
assert.match(await (await fetch(`http://127.0.0.1:${port}/`)).text(), /^tenon_tool_calls_total\{.*side="client"\} 1$/m);
page.close();

// #region close
await telemetry.close(); // sends what is left, for three seconds at most
// #endregion
