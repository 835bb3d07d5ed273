import { createClient, renderText } from "@tenon/client";
import { check } from "../lib/check.ts";
import { child } from "../lib/child.ts";

/** Runs the import with a log level; what was heard, as it was printed. */
async function run(logLevel: "debug" | "info"): Promise<{ text: string; progress: string[]; levels: string[] }> {
  const progress: string[] = [];
  const levels: string[] = [];
  await using client = createClient({
    servers: { importer: child(import.meta) },
    logLevel,
    events: {
      onProgress: ({ percent, message }, { server, tool }) => {
        console.log(`${server} ${tool} ${percent} % ${message}`);
        progress.push(`${server} ${tool} ${percent} %`);
      },
      onLog: ({ level, logger, data }) => {
        if (logger === "stderr") return; // what the process itself writes, such as the server's own log
        console.log(`  ${level}: ${data}`);
        levels.push(level);
      },
    },
  });
  const { content } = await client.callTool("importer", "import_orders", { filename: "orders.zip" });
  return { text: renderText(content), progress, levels };
}

const usual = await run("info");
check("the answer", usual.text, /orders\.zip/);
check(
  "progress with server, tool and percentage",
  usual.progress,
  [0, 25, 50, 75, 100].map((percent) => `importer import_orders ${percent} %`),
);
check("no debug lines unless asked for", usual.levels, ["info", "warning", "error"]);
check("debug lines when asked for", (await run("debug")).levels, [
  "info",
  "debug",
  "debug",
  "debug",
  "warning",
  "error",
]);
