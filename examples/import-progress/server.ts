import { createServer } from "@tenon/server";
import { z } from "zod";
import { say } from "../lib/locale.ts";

const stages = [say("解压文件", "unpack"), say("校验字段", "check fields"), say("写入订单", "write")];

const server = createServer({ name: "importer", version: "1.0.0", logLevel: "error" });
server.tool(
  "import_orders",
  { description: "Imports a file of orders.", input: z.object({ filename: z.string() }) },
  async ({ filename }, ctx) => {
    await ctx.log.info(say(`开始导入 ${filename}`, `importing ${filename}`));
    await ctx.progress(0, 100, say("开始", "started"));
    for (const [index, stage] of stages.entries()) {
      await ctx.log.debug(`${index + 1}/${stages.length}: ${stage}`);
      await ctx.progress(25 * (index + 1), 100, stage);
    }
    await ctx.log.warning(say("2 行没有电话", "2 rows have no phone number"));
    await ctx.log.error(say("1 行已跳过", "1 row was skipped"));
    await ctx.progress(100, 100, say("完成", "finished"));
    return say(`${filename} 已导入`, `${filename} is imported`);
  },
);

export default server;
await server.run(import.meta);
