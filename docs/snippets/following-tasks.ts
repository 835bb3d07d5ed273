import assert from "node:assert/strict";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { OfflineModel } from "@tenon/agent";
import { createServer } from "@tenon/server";
import { z } from "zod";

const folder = await mkdtemp(join(tmpdir(), "following-tasks-"));
const file = join(folder, "task.json");
const books = createServer({ name: "books", version: "1.0.0", logSink: () => {}, tasks: { pollIntervalMs: 100 } });
books.tool(
  "reconcile",
  { input: z.object({ month: z.string() }), idempotent: true, task: "required" },
  async ({ month }, ctx) => {
    for (let page = 1; page <= 3; page++) {
      await ctx.step(`page-${page}`, () => new Promise((resolve) => setTimeout(resolve, 100)));
      await ctx.progress(page, 3, `page ${page}`);
    }
    const close = await ctx.elicit(`Close ${month}?`, z.object({ close: z.boolean() }));
    return close.action === "accept" && close.data.close ? `${month} is closed` : `${month} stays open`;
  },
);
const listening = await books.listen({ port: 0 });
const { url } = listening;
const seen: string[] = [];
const show = (line: string) => void seen.push(line);

// #region first
import { createClient, renderText } from "@tenon/client";

const client = createClient({
  servers: { books: { url } },
  elicitation: async ({ message }) => {
    show(message); // "Close October?"
    return { action: "accept", content: { close: true } };
  },
});
const result = await client.callTool(
  "books",
  "reconcile",
  { month: "October" },
  { onProgress: ({ message, percent }) => show(`${message}, ${percent} %`), task: { totalMs: 8 * 60 * 60 * 1_000 } },
);
show(renderText(result.content)); // "October is closed"
// #endregion
assert.ok(seen.includes("page 3, 100 %"));
assert.deepEqual(seen.slice(-2), ["Close October?", "October is closed"]);

// #region by-id
const task = await client.tasks.start("books", "reconcile", { month: "November" });
if (task.id !== undefined) await writeFile(file, JSON.stringify(task)); // the process may end here

const { server, id, tool } = JSON.parse(await readFile(file, "utf8"));
const now = await client.tasks.get(server, id, { tool });
show(now.status); // "working", or what it is by now
const done = await client.tasks.resume(server, id, { tool }); // in whatever process
show(renderText(done.content)); // "November is closed"
// #endregion
assert.equal(seen.at(-1), "November is closed");
assert.ok(["working", "input_required"].includes(seen.at(-3) ?? ""), seen.join());

const asks = async (which: string) => {
  for (;;) {
    const handle = await client.tasks.get("books", which);
    if (handle.status !== "working") return handle;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};
const december = await client.tasks.start("books", "reconcile", { month: "December" });
await asks(december.id ?? "");
const waiting = december.id ?? "";

// #region answer
const { questions = {} } = await client.tasks.get("books", waiting);
for (const [key, { message }] of Object.entries(questions)) {
  show(message); // "Close December?"
  await client.tasks.answer("books", waiting, { [key]: { action: "decline" } });
}
// #endregion
assert.equal(renderText((await client.tasks.resume("books", waiting)).content), "December stays open");

const model = new OfflineModel({
  reply: ({ results: [said] }) =>
    said ? { text: said.text } : { calls: [{ name: "mcp_books_reconcile", args: { month: "January" } }] },
});
const data = (name: string): string => join(folder, name);
const yes = { action: "accept" as const, content: { close: true } };

// #region agent
import { SqliteSaver } from "@langchain/langgraph-checkpoint-sqlite";
import { mcpMiddleware, mcpTools, runInteractive } from "@tenon/agent";
import { createAgent } from "langchain";

const interrupting = createClient({ servers: { books: { url } }, elicitation: "interrupt" });
const agent = createAgent({
  model,
  tools: await mcpTools(interrupting),
  middleware: [mcpMiddleware()], // first in the list
  checkpointer: SqliteSaver.fromConnString(data("threads.db")),
});
const night = await runInteractive(agent, "Reconcile January", { threadId: "books", ask: () => undefined });
// the task asks and night.status is "paused"; whatever is killed meanwhile, the thread follows the same task

const morning = await runInteractive(agent, undefined, {
  threadId: "books",
  ask: (question) =>
    question.kind === "elicitation"
      ? { answers: Object.fromEntries(Object.keys(question.questions).map((key) => [key, yes])) }
      : { decisions: [] },
});
// #endregion
assert.equal(night.status, "paused");
assert.equal(morning.reply, "January is closed");

await interrupting.close();
await client.close();
await listening.close(10);
await books.close();
await rm(folder, { recursive: true });
