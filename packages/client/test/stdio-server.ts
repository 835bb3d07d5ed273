// A real server process. Arguments: `legacy` speaks the older revision only; with `exits` or `silent` that is also what it
// does when asked for the newer one; `stubborn` ignores SIGTERM and end of input; `crash` ends at once.
import { appendFileSync } from "node:fs";
import { StdioServerTransport, serveStdio } from "@modelcontextprotocol/server/stdio";
import { makeServer } from "./servers.ts";

const pids = process.env.PID_FILE;
if (pids) appendFileSync(pids, `${process.pid}\n`);
if (process.argv.includes("stubborn")) {
  process.on("SIGTERM", () => {});
  setInterval(() => {}, 1_000);
}
if (process.argv.includes("crash")) {
  process.stderr.write("cannot read the database\n");
  process.exit(1);
}
if (process.argv.includes("legacy")) {
  const transport = new StdioServerTransport();
  await makeServer().connect(transport);
  const serve = transport.onmessage;
  transport.onmessage = (message) => {
    if (!("method" in message) || message.method !== "server/discover") return serve?.(message);
    if (process.argv.includes("exits")) process.exit(1);
    if (!process.argv.includes("silent")) serve?.(message);
  };
} else {
  serveStdio(makeServer);
}
