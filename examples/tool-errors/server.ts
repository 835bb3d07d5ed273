import { createServer, ToolError } from "@tenon/server";
import { z } from "zod";

const users: Record<string, string> = { u001: "张三", u002: "李四", u003: "王五" };

/** Numbers from 0 to 1 that are the same on every run (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
const random = seeded(7);

const server = createServer({ name: "users", version: "1.0.0" });
server.tool(
  "get_user",
  { description: "Looks up a user.", input: z.object({ user_id: z.string() }) },
  ({ user_id }) => {
    const name = users[user_id];
    if (!name) throw new ToolError(`用户 ${user_id} 不存在，请核对编号`);
    return name;
  },
);
server.tool(
  "search_database",
  { description: "Searches the records.", input: z.object({ keyword: z.string() }) },
  ({ keyword }) => {
    if (random() < 0.7) throw new ToolError("数据库连接超时，请稍后重试");
    return `“${keyword}”：找到 10 条记录`;
  },
);

export default server;
await server.run(import.meta);
