import { createClient, type ElicitationAnswer, type ElicitationRequest, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";
import { say } from "../lib/locale.ts";

/** What the person types, one line after the other. */
const typed: string[] = [];
let asked = 0;

/** A terminal's way to ask: numbered choices, asked again while the number is none; `d` declines, nothing cancels. */
function askByNumber(question: ElicitationRequest): ElicitationAnswer {
  const [field] = question.mode === "form" ? question.fields : [];
  if (field?.kind !== "choice") return { action: "cancel" };
  for (;;) {
    asked += 1;
    console.log(question.message, field.options.map(({ title }, i) => `${i + 1} ${title}`).join("  "));
    const line = typed.shift();
    if (line === undefined) return { action: "cancel" };
    if (line === "d") return { action: "decline" };
    const option = field.options[Number(line) - 1];
    if (option) return { action: "accept", content: { [field.name]: option.value } };
  }
}

await using client = createClient({ servers: { files: child(import.meta) }, elicitation: askByNumber });
async function importFile(...lines: string[]): Promise<string> {
  typed.splice(0, typed.length, ...lines);
  asked = 0;
  return renderText((await client.callTool("files", "import_file", { filename: "orders.zip" })).content);
}

const listed = await client.callTool("files", "list_files");
check("the file is there", renderText(listed.content), '["orders.zip"]');
check("overwrite", await importFile("1"), say("已覆盖 orders.zip", "orders.zip was overwritten"));
check("skip", await importFile("2"), say("已跳过 orders.zip", "orders.zip was skipped"));
check("cancel, as a choice", await importFile("3"), say("导入已取消", "The import was cancelled"));
check("decline", await importFile("d"), say("没有选择，文件保持不变", "No choice was made; the file stays as it is"));
check(
  "cancel, by closing",
  await importFile(),
  say("对话已关闭，没有导入", "The question was closed; nothing was imported"),
);
check("a number that is none is asked again", await importFile("7", "0", "2"), /orders\.zip/);
check("three times in all", asked, 3);
const fresh = await client.callTool("files", "import_file", { filename: "refunds.zip" });
check(
  "no question without a conflict",
  renderText(fresh.content),
  say("已导入 refunds.zip", "refunds.zip was imported"),
);
