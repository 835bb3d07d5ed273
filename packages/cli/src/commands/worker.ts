import type { Command } from "commander";
import { attempt } from "../failure.ts";
import { wholeNumber } from "../options.ts";

/** `tenon worker`. */
export function addWorker(program: Command): void {
  program
    .command("worker <module>")
    .description("run the tasks of a server without serving it; on any number of machines that share its store")
    .option("--concurrency <count>", "tasks at once (default: what the server says, else 4)", wholeNumber(1, 1_000))
    .option(
      "--admin-port <port>",
      "port for /healthz, /readyz and /metrics on 127.0.0.1 (default: none)",
      wholeNumber(0, 65_535),
    )
    .addHelpText(
      "after",
      `
Examples:
  TENON_DATABASE_URL=postgres://tenon@db:5432/tenon tenon worker server.ts --concurrency 8

The module exports the server as its default: export default createServer({ … }). Servers that leave their tasks to workers say
tasks: { concurrency: 0 }. SIGTERM and Ctrl-C hand back what runs, and another worker continues it after its last finished step.`,
    )
    .action(async (module: string, flags: { concurrency?: number; adminPort?: number }) => {
      const { runWorker } = await import("../worker/worker.ts");
      await attempt("the worker does not run", () => runWorker(module, flags));
    });
}
