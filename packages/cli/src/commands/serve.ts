import { type Command, Option } from "commander";
import { attempt } from "../failure.ts";
import { wholeNumber } from "../options.ts";
import { addPlace } from "../place.ts";
import type { ServeFlags } from "../serve/serve.ts";

const MAX_WORKERS = 256;

/** `tenon serve`. */
export function addServe(program: Command): void {
  const command = program
    .command("serve")
    .description("a server from a file: where it listens, who may come in, which functions are its tools")
    .requiredOption("--config <file>", "the file, YAML or JSON")
    .addOption(
      new Option("--port <port>", "port to listen on; 0 takes a free one (default: the file's, else 8000)")
        .env("TENON_PORT")
        .argParser(wholeNumber(0, 65_535)),
    )
    .addOption(
      new Option("--host <address>", "address to bind (default: the file's, else 127.0.0.1)").env("TENON_HOST"),
    )
    .addOption(
      new Option(
        "--admin-port <port>",
        "port for /healthz, /readyz and /metrics on 127.0.0.1 (default: the file's, else none)",
      )
        .env("TENON_ADMIN_PORT")
        .argParser(wholeNumber(0, 65_535)),
    )
    .addOption(
      new Option("--workers <count>", "processes that serve the port together (default: the file's, else 1)")
        .env("TENON_WORKERS")
        .argParser(wholeNumber(1, MAX_WORKERS)),
    )
    .option("--check", "say everything that is wrong with the file, and serve nothing");
  addPlace(command)
    .option("--json", "print the address, or with --check the findings, as one line of JSON on stdout")
    .addHelpText(
      "after",
      `
Examples:
  tenon serve --config tenon.yaml
  tenon serve --config tenon.yaml --check
  tenon serve --config tenon.yaml --host 0.0.0.0 --port 8443 --workers 4 --admin-port 9030

A file:
  tools:
    now:
      description: The current time.
      function: ./functions.js#now

Flags win over the environment, the environment over the file. \${NAME} and \${NAME:-default} in it are environment variables.
SIGTERM and Ctrl-C end it within seconds.`,
    )
    .action(async (flags: ServeFlags) => {
      const { serve } = await import("../serve/serve.ts");
      await attempt("the server does not run", () => serve(flags));
    });
}
