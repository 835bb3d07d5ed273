// One client process: node client.mjs --client=tenon [--mode=…] --servers=<JSON> [--calls=n]. Connects to all servers, lists
// their tools, calls `add` on the first, and prints what it took as one line of JSON.
import { flag } from "../lib/flag.mjs";
import { median } from "../lib/rows.mjs";
import { WARM_UP } from "../lib/warm-up.mjs";

const { connect } = await import(`./clients/${flag("client")}.mjs`);
const begin = performance.now();
const client = await connect(JSON.parse(flag("servers")), flag("mode"));
const connectMs = performance.now() - begin;

const calls = Number(flag("calls", 0));
const took = [];
for (let i = calls > 0 ? -WARM_UP : 0; i < calls; i++) {
  const start = performance.now();
  const text = await client.call(i, 1);
  if (i >= 0) took.push(performance.now() - start);
  if (text !== String(i + 1)) throw new Error(`${flag("client")}: ${i} + 1 was ${text}`);
}
process.stdout.write(
  `${JSON.stringify({ tools: client.tools, connectMs, p50Us: took.length > 0 ? median(took) * 1_000 : 0 })}\n`,
);
await Promise.race([client.close(), new Promise((resolve) => setTimeout(resolve, 3_000))]);
process.exit(0);
