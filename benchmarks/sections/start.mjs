// stdio: from spawning the process to its first tools/list.
import { start } from "../lib/process.mjs";
import { rotated, row } from "../lib/rows.mjs";
import { LEGACY, listTools } from "../lib/wire.mjs";

const LANES = { tenon: "tenon-stdio.mjs", baseline: "sdk-stdio.mjs", fastmcp: "fastmcp-stdio.mjs" };
const initialize = {
  jsonrpc: "2.0",
  id: 0,
  method: "initialize",
  params: { protocolVersion: LEGACY, capabilities: {}, clientInfo: { name: "bench", version: "1.0.0" } },
};

function startMs(file, era) {
  return new Promise((resolve, reject) => {
    const begin = performance.now();
    const child = start(file, [], { stdio: ["pipe", "pipe", "ignore"] });
    const send = (line) => child.stdin.write(`${line}\n`);
    let read = "";
    let took;
    child.once("exit", (code) =>
      took === undefined ? reject(new Error(`${file} ended with ${code} before it answered`)) : resolve(took),
    );
    child.stdout.on("data", (data) => {
      read += data;
      const lines = read.split("\n");
      read = lines.pop();
      for (const line of lines.filter((one) => one.startsWith("{"))) {
        const message = JSON.parse(line);
        if (message.id === 0) {
          send(JSON.stringify({ jsonrpc: "2.0", method: "notifications/initialized" }));
          send(listTools("legacy").body);
        }
        if (message.id !== 1) continue;
        took = performance.now() - begin;
        if (message.result?.tools?.length !== 10) reject(new Error(`${file}: ${line.slice(0, 500)}`));
        child.stdin.end();
        setTimeout(() => child.kill("SIGKILL"), 3_000).unref();
      }
    });
    send(era === "modern" ? listTools("modern").body : JSON.stringify(initialize));
  });
}

export async function run({ repetitions = 15, log }) {
  const names = Object.keys(LANES);
  const eraOf = (name) => (name === "fastmcp" ? "legacy" : "modern");
  for (const name of names) await startMs(LANES[name], eraOf(name)); // fills the page cache
  const measured = Object.fromEntries(names.map((name) => [name, []]));
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const name of rotated(names, repetition)) measured[name].push(await startMs(LANES[name], eraOf(name)));
    log(`start: ${repetition + 1}/${repetitions}`);
  }
  return [row({ job: "start", variant: "stdio", unit: "ms", better: "less", baseline: "sdk-v2", measured })];
}
