// Client processes, measured in turns.
import { start } from "./process.mjs";
import { rotated } from "./rows.mjs";

const LIMIT_MS = 120_000;

/** Runs one client process. @returns what it printed */
function measure({ client, mode, servers, calls = 0 }) {
  const args = [`--client=${client}`, `--servers=${JSON.stringify(servers)}`, `--calls=${calls}`];
  return new Promise((resolve, reject) => {
    const child = start("client.mjs", mode ? [...args, `--mode=${mode}`] : args);
    const timer = setTimeout(() => child.kill("SIGKILL"), LIMIT_MS);
    let out = "";
    let log = "";
    child.stdout.on("data", (data) => {
      out += data;
    });
    child.stderr.on("data", (data) => {
      log = (log + data).slice(-5_000);
    });
    child.once("close", (code) => {
      clearTimeout(timer);
      const line = out.split("\n").find((one) => one.startsWith('{"tools"'));
      if (code === 0 && line) resolve(JSON.parse(line));
      else reject(new Error(`client ${client} ended with ${code}\n${log}`));
    });
  });
}

/**
 * One value per lane and repetition, lanes in turns.
 * @param lanes by name: which client, and its own `servers` where they are not those of all
 * @param around runs every client, for who measures something beside it
 */
export async function compare({
  lanes,
  value,
  repetitions,
  servers,
  tools,
  calls,
  log,
  what,
  around = (_, run) => run(),
}) {
  const measured = Object.fromEntries(Object.keys(lanes).map((name) => [name, []]));
  for (let repetition = 0; repetition < repetitions; repetition++) {
    for (const name of rotated(Object.keys(lanes), repetition)) {
      const result = await around(name, () => measure({ servers, ...lanes[name], calls }));
      if (result.tools !== tools) throw new Error(`${what}: ${name} found ${result.tools} tools instead of ${tools}`);
      measured[name].push(result[value]);
    }
    log(`${what}: ${repetition + 1}/${repetitions}`);
  }
  return measured;
}
