// Resident memory of one server over 100,000 calls: it must stay where it is. A single reading depends on when the collector
// last ran, so the median of the first three is compared with the median of the last three.
import { load } from "../lib/http-load.mjs";
import { residentMb, startHttp } from "../lib/process.mjs";
import { median } from "../lib/rows.mjs";
import { callAdd } from "../lib/wire.mjs";

const ROUNDS = 10;
const CALLS = 10_000;

export async function run({ log }) {
  const server = await startHttp("tenon-http.mjs", ["--tools=100"]);
  const job = { expected: '"text":"42"', connections: 16, ms: 120_000, calls: CALLS, port: server.port };
  const resident = [];
  for (let round = 0; round < ROUNDS; round++) {
    await load({ ...job, ...callAdd(round % 2 ? "legacy" : "modern") });
    resident.push(residentMb(server.pid));
    log(`memory after ${(round + 1) * CALLS} calls: ${resident.at(-1).toFixed(1)} MB`);
  }
  await server.stop();
  const first = median(resident.slice(0, 3));
  const last = median(resident.slice(-3));
  return [
    {
      job: "memory",
      variant: `resident over ${ROUNDS * CALLS} calls`,
      unit: "MB",
      tenon: Number(last.toFixed(1)),
      baseline: { name: "tenon-first", value: Number(first.toFixed(1)) },
      ratio: Number((first / last).toFixed(3)),
    },
  ];
}
