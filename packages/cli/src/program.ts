import { readFileSync } from "node:fs";
import { cleanText } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import { Command, CommanderError } from "commander";
import { addAudit } from "./commands/audit.ts";
import { addAuthServer } from "./commands/auth-server.ts";
import { addDoctor } from "./commands/doctor.ts";
import { addKeys } from "./commands/keys.ts";
import { addServe } from "./commands/serve.ts";
import { addTasks } from "./commands/tasks.ts";
import { addToken } from "./commands/token.ts";
import { addWorker } from "./commands/worker.ts";
import { describeFailure, usageError } from "./failure.ts";

const MORE = `
Begin with:
  tenon serve          functions and a file become a server: --config tenon.yaml
  tenon auth-server    people sign in to your server at http://127.0.0.1:8000/mcp
  tenon keys new       a key, and tokens signed with it: no person is asked
  tenon doctor <url>   why a server cannot be reached or used

Exit codes: 0 done, 1 failed, 2 the command line is wrong; tenon doctor has more.
Errors are three lines on stderr: what, why, what to do.`;

function versionOf(): string {
  const { version } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")) as {
    version: string;
  }; // our own manifest
  return version;
}

/** Every command with its options; what a command does is loaded when it runs. */
function createProgram(): Command {
  const program = new Command("tenon")
    .description("The command line of Tenon: MCP servers and clients, and what their development needs.")
    .version(versionOf())
    .option("--verbose", "show the causes of an error")
    .showSuggestionAfterError()
    .exitOverride()
    // errors are shown by `run`, in one form for all of them
    .configureOutput({ outputError: () => undefined, writeErr: (text) => process.stderr.write(cleanText(text)) })
    .addHelpText("after", MORE);
  addKeys(program);
  addToken(program);
  addAuthServer(program);
  addServe(program);
  addWorker(program);
  addTasks(program);
  addAudit(program);
  addDoctor(program);
  return program;
}

/** The command that the arguments name, as far as they name one, and how it is written: `tenon keys new`. */
function named(program: Command, args: readonly string[]): { command: Command; path: string } {
  let command = program;
  const path = [program.name()];
  for (const arg of args) {
    const next = command.commands.find((one) => one.name() === arg);
    if (next) {
      path.push(arg);
      command = next;
    } else if (!arg.startsWith("-")) break;
  }
  return { command, path: path.join(" ") };
}

/** A required option is missing: perhaps it is there, with a typing error, which commander would only find after that. */
function misspelt(error: unknown, command: Command, args: readonly string[]): unknown {
  if (!(error instanceof CommanderError) || error.code !== "commander.missingMandatoryOptionValue") return error;
  const known = ["--help", "--verbose", ...command.options.flatMap(({ long }) => long ?? [])];
  const unknown = args.flatMap((arg) => /^--[^=]+/.exec(arg)?.[0] ?? []).find((arg) => !known.includes(arg));
  const near = unknown && didYouMean(unknown, known);
  return near ? usageError(`unknown option '${unknown}'`, `did you mean ${near}?`) : error;
}

/** Runs one command line; the result is the exit code. Errors go to stderr. */
export async function run(args: readonly string[]): Promise<number> {
  const program = createProgram();
  try {
    await program.parseAsync(args, { from: "user" });
    return 0;
  } catch (error) {
    const { command, path } = named(program, args);
    const { text, exitCode } = describeFailure(misspelt(error, command, args), path, args.includes("--verbose"));
    process.stderr.write(text);
    return exitCode;
  }
}
