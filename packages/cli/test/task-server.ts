/** A server whose tasks others run: what `tenon worker` is given. */
import { createServer } from "@tenon/server";
import { openSqlite } from "@tenon/store/sqlite";

const stores = openSqlite({ path: process.env.TASKS_FILE ?? "" });
const server = createServer({
  name: "jobs",
  version: "1.0.0",
  store: stores,
  stateKeys: [Buffer.alloc(32, 7).toString("base64url")],
  tasks: { concurrency: 0, attempts: 1 },
  logLevel: "error",
});
server.tool(
  "double",
  { input: { type: "object", properties: { n: { type: "number" } } }, task: "required" },
  ({ n }, ctx) => ctx.step("double", () => Number(n) * 2),
);
server.tool("ask", { task: "required" }, async (_, ctx) => {
  const { action } = await ctx.elicit("Go on?", ["yes", "no"]);
  return action;
});
server.tool("fail", { task: { use: "required", attempts: 2 } }, () => {
  throw new Error("the disk is on fire");
});

export default server;
