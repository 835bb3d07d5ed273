/** The client of the evening: starts the task, writes its id down, and ends. */
import { writeFileSync } from "node:fs";
import { createClient } from "@tenon/client";

const [url = "", file = ""] = process.argv.slice(2);
await using client = createClient({
  servers: { ledger: { url } },
  // a task asks only what the client that started it said it can be asked; nobody is here to answer it tonight
  elicitation: async () => ({ action: "cancel" }),
});
const task = await client.tasks.start("ledger", "reconcile", { day: "2026-11-29" });
writeFileSync(file, JSON.stringify(task));
console.log(`evening: task ${task.status}`);
