import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";
import { openSqlite } from "@tenon/store/sqlite";
import { openTelemetry } from "@tenon/telemetry";
import { z } from "zod";

// one of the programs that a call goes through: `hop.ts <stock|stock-worker|shop> <folder> [address of the next one]`
const [what = "", folder = ".", next = ""] = process.argv.slice(2);
const telemetry = await openTelemetry({ serviceName: what });
const tell = (line: string): void => void process.stdout.write(`${line}\n`);
const until = (end: () => Promise<unknown>): void =>
  void process.once("SIGTERM", () => void end().then(() => process.exit(0)));

/** Its task is run by another process. */
function stock() {
  const server = createServer({
    name: "stock",
    version: "1.0.0",
    store: openSqlite({ path: `${folder}/tasks.db` }),
    tasks: { concurrency: 0, pollIntervalMs: 50 },
    logSink: (entry) => tell(`log ${JSON.stringify(entry)}`),
  });
  server.tool("count", { input: z.object({ of: z.string() }), task: "required" }, async ({ of }, ctx) => {
    await ctx.log.info("counted");
    return `7 ${of}`;
  });
  return server;
}

if (what === "stock") {
  const server = stock();
  const { url } = await server.listen({ port: 0 });
  tell(`ready ${url}`);
  until(() => server.close().then(() => telemetry.close()));
} else if (what === "stock-worker") {
  const server = stock();
  await server.work();
  tell("ready");
  until(() => server.close().then(() => telemetry.close()));
} else {
  const client = createClient({ servers: { stock: { url: next } } });
  const server = createServer({
    name: "shop",
    version: "1.0.0",
    logSink: (entry) => tell(`log ${JSON.stringify(entry)}`),
  });
  server.tool(
    "have",
    { input: z.object({ of: z.string() }), annotations: { destructiveHint: true } },
    async ({ of }, ctx) => {
      const sure = await ctx.elicit("Really count?", z.boolean());
      const result = await client.callTool("stock", "count", { of });
      await ctx.log.info("asked the stock");
      return `${sure.action}: ${JSON.stringify(result)}`;
    },
  );
  const { url } = await server.listen({ port: 0 });
  tell(`ready ${url}`);
  until(() =>
    server
      .close()
      .then(() => client.close())
      .then(() => telemetry.close()),
  );
}
