import { createServer } from "@tenon/server";
import { z } from "zod";
import { say } from "../lib/locale.ts";

const files = new Set(["orders.zip"]);

const server = createServer({ name: "files", version: "1.0.0" });
server.tool("list_files", { description: "Lists the files.", annotations: { readOnlyHint: true } }, () => [...files]);
server.tool(
  "import_file",
  { description: "Imports a file; asks when it is there already.", input: z.object({ filename: z.string() }) },
  async ({ filename }, ctx) => {
    if (files.has(filename)) {
      const answer = await ctx.elicit(say(`${filename} 已存在，怎么办？`, `${filename} exists. What now?`), {
        overwrite: say("覆盖", "Overwrite"),
        skip: say("跳过", "Skip"),
        cancel: say("取消导入", "Cancel the import"),
      });
      if (answer.action === "decline")
        return say("没有选择，文件保持不变", "No choice was made; the file stays as it is");
      if (answer.action === "cancel")
        return say("对话已关闭，没有导入", "The question was closed; nothing was imported");
      if (answer.data === "skip") return say(`已跳过 ${filename}`, `${filename} was skipped`);
      if (answer.data === "cancel") return say("导入已取消", "The import was cancelled");
      return say(`已覆盖 ${filename}`, `${filename} was overwritten`);
    }
    files.add(filename);
    return say(`已导入 ${filename}`, `${filename} was imported`);
  },
);

export default server;
await server.run(import.meta);
