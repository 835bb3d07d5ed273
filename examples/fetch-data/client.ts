import { createClient, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

/** What `ctx.log` sends when it has an `extra`. */
interface Payload {
  msg: string;
  extra: Record<string, unknown>;
}

const lines: string[] = [];
const payloads: Payload[] = [];
await using client = createClient({
  servers: { data: child(import.meta) },
  logLevel: "debug",
  events: {
    onLog: ({ level, logger, data }, { server }) => {
      const payload = data as Payload; // this server sends nothing else
      payloads.push(payload);
      lines.push(`${server} ${level}${logger ? ` ${logger}` : ""}`);
      console.log(`[${server}] ${level} ${payload.msg} ${JSON.stringify(payload.extra)}`);
    },
  },
});

const result = await client.callTool("data", "fetch_data", { query: "ORD-999" });
check("the answer", renderText(result.content), /ORD-999/);
check("four lines in order, with server, level and one logger", lines, [
  "data info",
  "data debug planner",
  "data warning",
  "data info",
]);
check(
  "payloads a program can read",
  payloads.map(({ extra }) => extra),
  [{ query: "ORD-999" }, { index: "by_name", cost: 3 }, { query: "ORD-999" }, { rows: 0 }],
);
