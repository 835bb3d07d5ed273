import { createServer } from "@tenon/server";
import { z } from "zod";
import { say } from "../lib/locale.ts";

const server = createServer({ name: "data", version: "1.0.0", logLevel: "error" });
server.tool(
  "fetch_data",
  { description: "Looks something up.", input: z.object({ query: z.string() }) },
  async ({ query }, ctx) => {
    await ctx.log.info(say("开始查询", "search started"), { extra: { query } });
    await ctx.log.debug(say("查询计划", "query plan"), { extra: { index: "by_name", cost: 3 }, logger: "planner" });
    await ctx.log.warning(say("缓存未命中", "not in the cache"), { extra: { query } });
    await ctx.log.info(say("查询结束", "search finished"), { extra: { rows: 0 } });
    return say(`没有找到 ${query}`, `Nothing found for ${query}`);
  },
);

export default server;
await server.run(import.meta);
