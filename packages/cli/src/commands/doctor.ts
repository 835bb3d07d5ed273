import { type Command, Option } from "commander";
import { collect, wholeNumber } from "../options.ts";

/** `tenon doctor`. */
export function addDoctor(program: Command): void {
  program
    .command("doctor [target...]")
    .description("find out why a server cannot be reached or used: cause, evidence, fix")
    .option("--header <name: value>", "sent with every request; may be repeated", collect)
    .option("--token-env <name>", "environment variable with the access token to send")
    .option("--timeout-ms <ms>", "longest time for everything", wholeNumber(500, 60_000), 4_000)
    .option("--contract-keys-env <name>", "environment variable with contract keys (default: TENON_CONTRACT_KEYS)")
    .option("--context <json>", "the context that calls would carry, held against the server's contract")
    .addOption(
      new Option("--revision <date>", "ask for this revision of the protocol only").choices([
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
      ]),
    )
    .option("--json", "print the report as JSON")
    .addHelpText(
      "after",
      `
Examples:
  tenon doctor http://127.0.0.1:8000/mcp
  tenon doctor https://example.com/mcp --token-env ORDERS_TOKEN --json
  tenon doctor mcp.json                 every server in it, side by side
  tenon doctor -- node server.js        a server over stdio

Exit codes: 0 healthy (warnings are), 3 network, 4 HTTP, 5 protocol, 6 authentication, 7 contract, 8 tools, 9 process;
1 and 2 as everywhere. No tool is called. It ends within half a second after --timeout-ms.`,
    )
    .action(async (words: string[], flags, command: Command) => {
      const { doctor } = await import("../doctor/run.ts");
      // only the words as they were typed say where a command begins
      const typed = rootOf(command);
      const at = typed.indexOf("--");
      await doctor(words, at < 0 ? undefined : typed.slice(at + 1), flags);
    });
}

/** The command line as it was given. */
function rootOf(command: Command): readonly string[] {
  const { parent } = command;
  // commander keeps it, and its types leave it out
  return parent ? rootOf(parent) : ((command as Command & { rawArgs?: string[] }).rawArgs ?? []);
}
