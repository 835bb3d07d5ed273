import { createServer } from "@tenon/server";
import { z } from "zod";
import { say } from "../lib/locale.ts";

const input = z.object({ file_path: z.string() });
const TOTAL = 1000;
const parts: [number, string][] = [
  [125, say("已读取文件头", "header read")],
  [372, say("已校验校验和", "checksum verified")],
  [728, say("已解析记录", "records parsed")],
  [1000, say("处理完成", "finished")],
];

const server = createServer({ name: "files", version: "1.0.0" });
server.tool(
  "process_large_file",
  { description: "Processes a file whose size is known.", input },
  async ({ file_path }, ctx) => {
    for (const [done, message] of parts) await ctx.progress(done, TOTAL, message);
    return say(`${file_path} 处理完成`, `${file_path} is processed`);
  },
);
server.tool(
  "process_stream",
  { description: "Processes a stream whose size nobody knows.", input },
  async ({ file_path }, ctx) => {
    for (const [done, message] of parts) await ctx.progress(done, undefined, message);
    return say(`${file_path} 处理完成`, `${file_path} is processed`);
  },
);

export default server;
await server.run(import.meta);
