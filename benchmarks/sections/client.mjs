// What tool calls cost, one after the other: the p50 in a process of its own for every measurement.
import { compare } from "../lib/clients.mjs";
import { cpuUs, startHttp } from "../lib/process.mjs";
import { row } from "../lib/rows.mjs";
import { WARM_UP } from "../lib/warm-up.mjs";

const CALLS = 2_000;
const urlsOf = (servers) => servers.map(({ port }) => ({ url: `http://127.0.0.1:${port}/mcp` }));
const JOB = { value: "p50Us", tools: 1, calls: CALLS };

async function clients({ repetitions, log }) {
  const server = await startHttp("raw-http.mjs", []);
  const lanes = {
    tenon: { client: "tenon" },
    baseline: { client: "sdk", mode: "pinned" },
    "sdk-v1": { client: "sdk-v1" },
    "mcp-adapters": { client: "mcp-adapters" },
    undici: { client: "undici" },
  };
  const measured = await compare({ ...JOB, lanes, servers: urlsOf([server]), repetitions, log, what: "calls" });
  await server.stop();
  return row({ job: "call", variant: "http, sequential", unit: "µs", better: "less", baseline: "sdk-v2", measured });
}

/**
 * The same call with a signed contract whose context is checked on both sides, two replicas behind breakers, and metrics on both
 * sides, against Tenon without any of them: what the caller waits for, and what the server works.
 */
async function watched({ repetitions, log }) {
  const plain = [await startHttp("tenon-http.mjs", [])];
  const replicas = [
    await startHttp("tenon-http.mjs", ["--watched=yes"]),
    await startHttp("tenon-http.mjs", ["--watched=yes"]),
  ];
  const lanes = {
    tenon: { client: "tenon-watched", servers: urlsOf(replicas), pids: replicas.map(({ pid }) => pid) },
    baseline: { client: "tenon", servers: urlsOf(plain), pids: plain.map(({ pid }) => pid) },
  };
  const cpu = { tenon: [], baseline: [] };
  const worked = (lane) => lanes[lane].pids.reduce((sum, pid) => sum + cpuUs(pid), 0);
  const around = async (lane, run) => {
    const before = worked(lane);
    const result = await run();
    cpu[lane].push((worked(lane) - before) / (CALLS + WARM_UP));
    return result;
  };
  // a server compiles while it serves its first ten thousand calls: both must have them behind them
  await compare({ ...JOB, calls: 15_000, lanes, repetitions: 1, log: () => {}, what: "warm-up" });
  const what = "contract, routing, metrics";
  const measured = await compare({ ...JOB, lanes, repetitions, log, what, around });
  await Promise.all([...plain, ...replicas].map((server) => server.stop()));
  const variant = "http, sequential, contract + routing + metrics";
  const about = { variant, unit: "µs", better: "less", baseline: "tenon-plain" };
  return [row({ job: "call", ...about, measured }), row({ job: "server-cpu", ...about, measured: cpu })];
}

export async function run({ repetitions = 7, log }) {
  return [await clients({ repetitions, log }), ...(await watched({ repetitions, log }))];
}
