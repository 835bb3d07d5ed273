#!/usr/bin/env node
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { cleanText as clean, TenonError } from "@tenon/core";
import { Command, InvalidArgumentError, Option } from "commander";
import { openDataDirectory } from "./data-directory.ts";
import type { DeskFlags } from "./flags.ts";

// what a command needs is loaded when it runs: a server does without the agent's half
const runChat = async (flags: DeskFlags): Promise<void> => (await import("./run-chat.ts")).runChat(flags);
const servers = () => import("./run-servers.ts");

/** `npm start`: the servers, and the chat where there is a terminal. */
async function runStart(flags: DeskFlags): Promise<void> {
  const terminal = process.stdin.isTTY && process.stdout.isTTY;
  await (terminal ? runChat(flags) : (await servers()).runServers(flags));
}

const port = (text: string): number => {
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("expected a port from 0 to 65535");
};
const names = (name: string, before: readonly string[] = []): string[] => [...before, name];
const tasks = (text: string): number => {
  if (/^[1-9]\d{0,3}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("expected a number of tasks from 1 to 9999");
};
const admin = (command: Command): Command =>
  command
    .option("--admin-port <port>", "answer /healthz, /readyz and /metrics on a port of their own", port)
    .option("--admin-host <address>", "address of the admin port, default 127.0.0.1");
const common = (command: Command): Command =>
  command
    .option("--data <directory>", "where orders and threads are kept", process.env.TENON_DATA_DIR ?? ".tenon")
    .addOption(
      new Option(
        "--database <url>",
        "Postgres that any number of machines share; default: files in the data directory",
      ).env("TENON_DATABASE_URL"),
    )
    .addOption(
      new Option("--schema <name>", "schema of the tables in Postgres, default after_sales").env(
        "TENON_DATABASE_SCHEMA",
      ),
    )
    .addOption(new Option("--lang <language>", "language of all texts").choices(["zh", "en"]).default("zh"))
    .option("--otlp <url>", "send traces to this collector (or OTEL_EXPORTER_OTLP_ENDPOINT): http://127.0.0.1:4318")
    .option("--sms-webhook <url>", "SMS gateway that takes JSON; default: messages are only stored and logged");
const deskFlags = (command: Command): Command =>
  common(command)
    .option(
      "--model <spec>",
      "offline, openai:…, deepseek:…, openai-compatible:…",
      process.env.TENON_MODEL ?? "offline",
    )
    .option("--base-url <url>", "endpoint of the model, where it is not the provider's own")
    .option("--thread <id>", "conversation to continue or begin", "main")
    .option("--all", "run both servers inside this process")
    .option("--order-port <port>", "port of the order server (default 8030, or a free one)", port)
    .option("--notification-port <port>", "port of the notification server (default 8031, or a free one)", port)
    .option("--order-url <url>", "use an order server that runs elsewhere")
    .option("--notification-url <url>", "use a notification server that runs elsewhere")
    .option("--order-token-file <path>", "file with a token for the order server (or TENON_ORDER_TOKEN)")
    .option(
      "--notification-token-file <path>",
      "file with a token for the notification server (or TENON_NOTIFICATION_TOKEN)",
    );

/** The command line. */
export function createProgram(): Command {
  const program = new Command("after-sales")
    .description("An after-sales desk on two MCP servers and one agent")
    .configureOutput({ writeErr: (text) => process.stderr.write(clean(text)) })
    .showSuggestionAfterError()
    .hook("preAction", (_, command) => {
      command.setOptionValue("data", openDataDirectory(command.getOptionValue("data")));
    });
  deskFlags(program.command("start").description("servers and chat; without a terminal only the servers")).action(
    runStart,
  );
  deskFlags(program.command("chat").description("chat in the terminal, or piped line by line")).action(runChat);
  admin(common(program.command("serve <server>").description("one server: order, notification or all")))
    .option("--port <port>", "port to listen on", port)
    .option("--any-port", "take a free port when the wanted one is in use")
    .option("--host <address>", "address to bind, default 127.0.0.1; any other needs --allowed-host")
    .option("--allowed-host <name>", "host name under which clients reach it; may be given several times", names)
    .addOption(new Option("--issuer <issuer>", "take tokens of this issuer, not the desk's own").env("TENON_ISSUER"))
    .addOption(new Option("--jwks <url|file>", "public keys of that issuer (RFC 7517)").env("TENON_JWKS"))
    .addOption(
      new Option("--audience <uri>", "what tokens must have been issued for; default: the server's name").env(
        "TENON_AUDIENCE",
      ),
    )
    .option("--tls-cert <file>", "certificate (PEM): tokens travel to other machines encrypted")
    .option("--tls-key <file>", "its key (PEM)")
    .option("--no-worker", "leave tasks to `worker` processes")
    .action(async (which, flags) => (await servers()).runServe(which, flags));
  admin(
    common(
      program.command("worker").description("runs tasks of the order server, on any machine that shares its database"),
    ),
  )
    .option("--concurrency <tasks>", "tasks at once, default 4", tasks)
    .action(async (flags) => (await servers()).runWorker(flags));
  return program;
}

/** The program's edge: a person reads one line, never a trace. */
function fail(error: unknown): never {
  const message =
    error instanceof TenonError ? error.message : `unexpected error: ${error instanceof Error ? error.message : error}`;
  if (process.connected) process.send?.({ error: message });
  process.stderr.write(`after-sales: ${clean(message)}\n`);
  process.exit(1);
}

const entry = process.argv[1];
if (entry !== undefined && realpathSync(entry) === realpathSync(fileURLToPath(import.meta.url))) {
  process.on("uncaughtException", fail);
  try {
    await createProgram().parseAsync();
    process.exit(0);
  } catch (error) {
    fail(error);
  }
}
