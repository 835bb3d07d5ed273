// tools/call over HTTP at 16 connections, by era and number of registered tools.
import { load } from "../lib/http-load.mjs";
import { startHttp } from "../lib/process.mjs";
import { rotated, row } from "../lib/rows.mjs";
import { issue } from "../lib/tokens.mjs";
import { callAdd } from "../lib/wire.mjs";

const CONNECTIONS = 16;
const COUNTS = [1, 100, 1000];

/** The same with a token: Tenon checks it (and remembers that for a minute) and runs one middleware, the SDK checks every one. */
export async function withToken({ repetitions, ms, log }) {
  const { token, argument } = await issue();
  const servers = {
    tenon: await startHttp("tenon-http.mjs", [argument]),
    baseline: await startHttp("sdk-http.mjs", [argument]),
  };
  const rows = [];
  for (const era of ["modern", "legacy"]) {
    const { body, headers } = callAdd(era);
    const sent = { body, headers: { ...headers, authorization: `Bearer ${token}` } };
    const job = { ...sent, expected: '"text":"42"', connections: CONNECTIONS };
    const measured = { tenon: [], baseline: [] };
    for (const name of Object.keys(servers)) await load({ ...job, port: servers[name].port, ms: 4_000, calls: 4_000 });
    for (let repetition = 0; repetition < repetitions; repetition++) {
      for (const name of rotated(Object.keys(servers), repetition)) {
        measured[name].push((await load({ ...job, port: servers[name].port, ms })).perSecond);
      }
      log(`tools/call ${era}, token and middleware: ${repetition + 1}/${repetitions}`);
    }
    const variant = `${era}, ${CONNECTIONS} connections, 1 tool, token + middleware`;
    rows.push(
      row({
        job: "tools/call",
        variant,
        unit: "calls/s",
        better: "more",
        baseline: "sdk-v2 + requireBearerAuth",
        measured,
      }),
    );
  }
  await Promise.all(Object.values(servers).map((server) => server.stop()));
  return rows;
}

export async function run({ repetitions = 7, ms = 500, log }) {
  const rows = await withToken({ repetitions, ms, log });
  for (const count of COUNTS) {
    const args = [`--tools=${count}`];
    const servers = {
      tenon: await startHttp("tenon-http.mjs", args),
      baseline: await startHttp("sdk-http.mjs", args),
      fastmcp: await startHttp("fastmcp-http.mjs", args),
    };
    for (const era of ["modern", "legacy"]) {
      const job = { ...callAdd(era), expected: '"text":"42"', connections: CONNECTIONS };
      // fastmcp speaks the older era only
      const lanes = Object.keys(servers).filter((name) => era === "legacy" || name !== "fastmcp");
      for (const name of lanes) await load({ ...job, port: servers[name].port, ms: 4_000, calls: 4_000 });
      const measured = Object.fromEntries(lanes.map((name) => [name, []]));
      for (let repetition = 0; repetition < repetitions; repetition++) {
        for (const name of rotated(lanes, repetition)) {
          // a slow server needs time for more than the calls of one round
          const slice = name === "baseline" && count === 1000 ? ms * 4 : ms;
          measured[name].push((await load({ ...job, port: servers[name].port, ms: slice })).perSecond);
        }
        log(`tools/call ${era}, ${count} tools: ${repetition + 1}/${repetitions}`);
      }
      const variant = `${era}, ${CONNECTIONS} connections, ${count} tool${count === 1 ? "" : "s"}`;
      rows.push(row({ job: "tools/call", variant, unit: "calls/s", better: "more", baseline: "sdk-v2", measured }));
    }
    await Promise.all(Object.values(servers).map((server) => server.stop()));
  }
  return rows;
}
