// What it costs to connect to many servers and list their tools. Every measurement is a process of its own.
import { fileURLToPath } from "node:url";
import { compare } from "../lib/clients.mjs";
import { startHttp } from "../lib/process.mjs";
import { row } from "../lib/rows.mjs";

const HTTP_SERVERS = 20;
const DELAY_MS = 50;
const STDIO_SERVERS = 10;
const TOOLS = 10;

const TENON = { client: "tenon" };
const PINNED = { client: "sdk", mode: "pinned" };
const PRIOR = { client: "sdk", mode: "prior" };
const ADAPTERS = { client: "mcp-adapters" };

async function manyHttp(options) {
  const args = [`--ports=${HTTP_SERVERS}`, `--delay=${DELAY_MS}`, `--tools=${TOOLS}`];
  const server = await startHttp("raw-http.mjs", args);
  const lanes = { tenon: TENON, baseline: PINNED, "sdk-v2-prior": PRIOR, "mcp-adapters": ADAPTERS };
  const servers = server.ports.map((port) => ({ url: `http://127.0.0.1:${port}/mcp` }));
  const job = { lanes, value: "connectMs", servers, tools: HTTP_SERVERS * TOOLS, what: `${HTTP_SERVERS} HTTP servers` };
  const measured = await compare({ ...job, ...options });
  await server.stop();
  const variant = `${HTTP_SERVERS} http, ${DELAY_MS} ms delay`;
  return row({ job: "connect", variant, unit: "ms", better: "less", baseline: "sdk-v2-pinned", measured });
}

async function manyStdio(options) {
  const file = fileURLToPath(new URL("../peers/sdk-stdio.mjs", import.meta.url));
  const servers = Array.from({ length: STDIO_SERVERS }, () => ({ command: process.execPath, args: [file] }));
  const lanes = { tenon: TENON, baseline: PRIOR, "sdk-v2-pinned": PINNED, "mcp-adapters": ADAPTERS };
  const job = {
    lanes,
    value: "connectMs",
    servers,
    tools: STDIO_SERVERS * TOOLS,
    what: `${STDIO_SERVERS} stdio servers`,
  };
  const measured = await compare({ ...job, ...options });
  const variant = `${STDIO_SERVERS} stdio`;
  return row({ job: "connect", variant, unit: "ms", better: "less", baseline: "sdk-v2-prior", measured });
}

export async function run({ repetitions = 7, log }) {
  return [
    await manyHttp({ repetitions, log }),
    await manyStdio({ repetitions: Math.min(repetitions, 5), log }), // ten processes each: slow, and steady enough
  ];
}
