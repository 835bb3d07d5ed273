// What tool calls cost, one after the other: the p50 in a process of its own for every measurement.
import { compare } from "../lib/clients.mjs";
import { startHttp } from "../lib/process.mjs";
import { row } from "../lib/rows.mjs";

const CALLS = 2_000;

export async function run({ repetitions = 7, log }) {
  const server = await startHttp("raw-http.mjs", []);
  const lanes = {
    tenon: { client: "tenon" },
    baseline: { client: "sdk", mode: "pinned" },
    "sdk-v1": { client: "sdk-v1" },
    "mcp-adapters": { client: "mcp-adapters" },
    undici: { client: "undici" },
  };
  const job = {
    lanes,
    value: "p50Us",
    servers: [{ url: `http://127.0.0.1:${server.port}/mcp` }],
    tools: 1,
    calls: CALLS,
    what: "calls",
  };
  const measured = await compare({ ...job, repetitions, log });
  await server.stop();
  return [row({ job: "call", variant: "http, sequential", unit: "µs", better: "less", baseline: "sdk-v2", measured })];
}
