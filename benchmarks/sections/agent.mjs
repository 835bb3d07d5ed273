// What a tool costs an agent: `invoke` of a LangChain tool, Tenon's against the adapter package's, both on the older revision.
import { compare } from "../lib/clients.mjs";
import { startHttp } from "../lib/process.mjs";
import { row } from "../lib/rows.mjs";

const CALLS = 2_000;

export async function run({ repetitions = 7, log }) {
  const server = await startHttp("raw-http.mjs", ["--era=legacy"]);
  const lanes = {
    tenon: { client: "tenon-tools" },
    baseline: { client: "mcp-adapters" },
    "multi-server": { client: "tenon-tools", mode: "multi-server" },
  };
  const servers = [{ url: `http://127.0.0.1:${server.port}/mcp` }];
  const job = { lanes, value: "p50Us", servers, tools: 1, calls: CALLS, what: "tool calls" };
  const measured = await compare({ ...job, repetitions, log });
  await server.stop();
  return [
    row({
      job: "agent-call",
      variant: "legacy, sequential",
      unit: "µs",
      better: "less",
      baseline: "mcp-adapters",
      measured,
    }),
  ];
}
