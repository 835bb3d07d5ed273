import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connect, type TestClient } from "@tenon/server/testing";

process.chdir(mkdtempSync(join(tmpdir(), "tenon-tasks-")));
const booked: string[] = [];
const ledger = {
  settle: (id: string, key: string) => void booked.push(`${id} ${key.length}`),
  find: async (month: string) => [`${month} 1`, `${month} 2`],
};

// #region first
import { createServer } from "@tenon/server";
import { openSqlite } from "@tenon/store/sqlite";
import { z } from "zod";

const stores = openSqlite({ path: "data/tenon.sqlite" });
const server = createServer({ name: "ledger", version: "1.0.0", store: stores });
server.tool("settle", { input: z.object({ ids: z.array(z.string()) }), task: "optional" }, async ({ ids }, ctx) => {
  for (const [i, id] of ids.entries()) {
    await ctx.step(`settle ${id}`, (key) => ledger.settle(id, key));
    await ctx.progress(i + 1, ids.length, `settled ${id}`);
  }
  const answer = await ctx.elicit(`Send ${ids.length} letters?`, z.boolean());
  return answer.action === "accept" && answer.data ? `${ids.length} settled and told` : `${ids.length} settled`;
});
// #endregion

// #region options
server.tool(
  "reconcile",
  {
    input: z.object({ ids: z.array(z.string()) }),
    argumentLimits: { maxArrayElements: 50_000 },
    task: { use: "required", attempts: 5, ttlMs: 30 * 24 * 60 * 60 * 1_000, pollIntervalMs: 5_000 },
  },
  async ({ ids }, ctx) => {
    for (const id of ids) await ctx.step(id, (key) => ledger.settle(id, key));
    return { settled: ids.length };
  },
);
// #endregion

// #region start
server.tool("report", { task: { use: "optional", start: "handler" } }, async (_, ctx) => {
  const month = await ctx.elicit("Which month?", ["May", "June"]); // in the call: the person is there
  if (month.action !== "accept") return "No report";
  await ctx.startTask(); // from here on in the background
  const entries = await ctx.step("entries", () => ledger.find(month.data));
  return `${entries.length} entries in ${month.data}`;
});
// #endregion

const TASKS = { extensions: { "io.modelcontextprotocol/tasks": {} } };

async function ended(client: TestClient, taskId: unknown): Promise<Record<string, unknown>> {
  for (;;) {
    const task = await client.request("tasks/get", { taskId });
    if (task.status === "input_required") {
      const [key] = Object.keys(task.inputRequests as object);
      const inputResponses = { [String(key)]: { action: "accept", content: { value: true } } };
      await client.request("tasks/update", { taskId, inputResponses });
    } else if (task.status !== "working") return task;
    await sleep(20);
  }
}
const textOf = (task: Record<string, unknown>): string =>
  (task.result as { content: { text: string }[] }).content.map(({ text }) => text).join();

{
  await using client = await connect(server, { elicit: { "Which month?": "May" }, capabilities: TASKS });
  const begun = (await client.callTool("settle", { ids: ["a", "b"] })).raw as Record<string, unknown>;
  assert.equal(begun.resultType, "task");
  assert.equal(textOf(await ended(client, begun.taskId)), "2 settled and told");
  assert.deepEqual(booked, ["a 43", "b 43"]);
  const report = (await client.callTool("report")).raw as Record<string, unknown>;
  assert.equal(textOf(await ended(client, report.taskId)), "2 entries in May");
  const many = (await client.callTool("reconcile", { ids: ["c"] })).raw as Record<string, unknown>;
  assert.equal((await ended(client, many.taskId)).status, "completed");
}
{
  // a client that does not know tasks
  await using client = await connect(server, { era: "legacy", elicit: { "Send 1 letters?": true } });
  assert.equal((await client.callTool("settle", { ids: ["d"] })).text, "1 settled and told");
  await assert.rejects(client.callTool("reconcile", { ids: [] }), /needs a client that declares/);
}

// #region testing
{
  await using client = await connect(server, { tasks: true, elicit: { "Send 1 letters?": false } });
  assert.equal((await client.callTool("settle", { ids: ["e"] })).text, "1 settled");
}
// #endregion

// #region worker
const working = await server.work({ concurrency: 8 });
process.once("SIGTERM", () => working.close());
// #endregion
await working.close();
await server.close();
await stores.close();
rmSync(process.cwd(), { recursive: true });
