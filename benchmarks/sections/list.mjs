// tools/list of 1,000 tools on one page, one connection.
import { load } from "../lib/http-load.mjs";
import { startHttp } from "../lib/process.mjs";
import { rotated, row } from "../lib/rows.mjs";
import { listTools } from "../lib/wire.mjs";

const COUNT = 1000;

export async function run({ repetitions = 7, log }) {
  const args = [`--tools=${COUNT}`];
  const servers = {
    tenon: await startHttp("tenon-http.mjs", args),
    baseline: await startHttp("sdk-http.mjs", args),
  };
  const job = { ...listTools("modern"), expected: `"tool_${COUNT - 1}"`, ms: 60_000 };
  for (const server of Object.values(servers)) await load({ ...job, port: server.port, calls: 15 });
  const measured = { tenon: [], baseline: [] };
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const name of rotated(Object.keys(servers), repetition)) {
      const calls = name === "tenon" ? 50 : 5;
      measured[name].push((await load({ ...job, port: servers[name].port, calls })).median);
    }
    log(`tools/list: ${repetition + 1}/${repetitions}`);
  }
  await Promise.all(Object.values(servers).map((server) => server.stop()));
  const variant = `modern, ${COUNT} tools`;
  return [row({ job: "tools/list", variant, unit: "ms", better: "less", baseline: "sdk-v2", measured })];
}
