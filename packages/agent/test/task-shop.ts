/** A shop of ours in a process of its own whose tool works as a task. Started by tasks-own-server.test.ts. */
import { appendFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer } from "@tenon/server";
import { openSqlite } from "@tenon/store/sqlite";
import { z } from "zod";

const [database, effects, port] = process.argv.slice(2);
if (process.env.TENON_TASK_SHOP && database && effects) {
  const server = createServer({
    name: "shop",
    version: "1.0.0",
    logSink: () => {},
    store: openSqlite({ path: database, leaseMs: 1_000 }),
    tasks: { pollIntervalMs: 100 },
  });
  server.tool(
    "work",
    { input: z.object({ label: z.string(), steps: z.number(), ask: z.boolean() }), task: "required" },
    async ({ label, steps, ask }, ctx) => {
      for (let step = 1; step <= steps; step++) {
        await ctx.step(`step-${step}`, async (key) => {
          await sleep(100);
          appendFileSync(effects, `${label} ${step} ${key}\n`);
        });
        await ctx.progress(step, steps, `step ${step}`);
      }
      if (!ask) return { done: label };
      const { sure, loud } = await ctx.elicitAll({ sure: z.boolean(), loud: z.boolean() });
      await ctx.step("end", (key) => appendFileSync(effects, `${label} end ${key}\n`));
      return { done: label, sure: sure.action === "accept" && sure.data, loud: loud.action === "accept" && loud.data };
    },
  );
  const { url } = await server.listen({ port: Number(port ?? 0) });
  process.stdout.write(`${url}\n`);
}
