/** The client of the morning: another process that knows the task by what the first one wrote down. */
import { readFileSync } from "node:fs";
import { createClient, renderText } from "@tenon/client";

const [url = "", file = ""] = process.argv.slice(2);
const { id } = JSON.parse(readFileSync(file, "utf8"));
await using client = createClient({
  servers: { ledger: { url } },
  events: { onProgress: ({ progress, total, message }) => console.log(`  ${progress}/${total} ${message}`) },
  async elicitation({ message }) {
    console.log(`  asked: ${message}`);
    return { action: "accept", content: { value: "correct" } };
  },
});
const result = await client.tasks.resume("ledger", id);
console.log(`morning: ${renderText(result.content)}`);
