#!/usr/bin/env node
import { realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { resolveModel } from "@tenon/agent";
import { ConfigError, TenonError } from "@tenon/core";
import { Command, InvalidArgumentError, Option } from "commander";
import { openDesk, SERVER_NAMES, type ServerName } from "./agent/desk.ts";
import { openThreads } from "./agent/threads.ts";
import { chat } from "./chat/chat.ts";
import { openLines } from "./chat/lines.ts";
import { offlineRules } from "./offline/rules.ts";
import { openDataDirectory } from "./servers/database.ts";
import { createDeskServer, listenOn, PORTS } from "./servers/serve.ts";
import { type Supervised, startServers } from "./servers/supervisor.ts";
import { type Lang, textsFor } from "./texts/index.ts";

/** The one user of the desk until it has tokens: who the agent acts for. */
const USER = { userId: "user_zhangsan", userName: "张三" };

interface CommonOptions {
  data: string;
  lang: Lang;
  smsWebhook?: string;
}
interface DeskFlags extends CommonOptions {
  model: string;
  baseUrl?: string;
  thread: string;
  all?: boolean;
  orderPort?: number;
  notificationPort?: number;
  orderUrl?: string;
  notificationUrl?: string;
}

/** Fires on Ctrl-C, on a polite request to stop, and when the terminal goes away. A second Ctrl-C ends at once. */
function stopSignal(): AbortController {
  const stop = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(name, () => {
      if (stop.signal.aborted) process.exit(130);
      stop.abort();
    });
  }
  return stop;
}

/** The desk's servers: those whose address was given are used as they are, both or none. */
async function reachServers(flags: DeskFlags, dataDirectory: string, say: (line: string) => void): Promise<Supervised> {
  const t = textsFor(flags.lang);
  const title = (name: ServerName): string => t.offline.serverNames[name] ?? name;
  if (flags.orderUrl || flags.notificationUrl) {
    const urls = {
      order: flags.orderUrl ?? `http://127.0.0.1:${PORTS.order}/mcp`,
      notification: flags.notificationUrl ?? `http://127.0.0.1:${PORTS.notification}/mcp`,
    };
    return { urls, moved: [], close: async () => undefined };
  }
  const servers = await startServers({
    entry: fileURLToPath(import.meta.url),
    dataDirectory,
    lang: flags.lang,
    smsWebhook: flags.smsWebhook,
    inProcess: flags.all ?? false,
    ports: {
      ...(flags.orderPort !== undefined && { order: flags.orderPort }),
      ...(flags.notificationPort !== undefined && { notification: flags.notificationPort }),
    },
    onExit: (name) => say(t.chat.serverExited(title(name))),
  });
  for (const name of servers.moved) say(t.chat.portTaken(title(name), PORTS[name], servers.urls[name]));
  return servers;
}

async function runChat(flags: DeskFlags): Promise<void> {
  const t = textsFor(flags.lang);
  const dataDirectory = openDataDirectory(flags.data);
  const model = await resolveModel(flags.model, {
    ...(flags.baseUrl && { baseUrl: flags.baseUrl }),
    ...(flags.model === "offline" && { offline: offlineRules(flags.lang) }),
  });
  const stop = stopSignal();
  const lines = openLines(process.stdin, process.stdout, () => stop.abort());
  const servers = await reachServers(flags, dataDirectory, (line) => lines.write(`${line}\n`));
  const threads = openThreads(dataDirectory);
  const desk = openDesk({ urls: servers.urls, model, threads, texts: t });
  try {
    await chat({
      desk,
      threads,
      lines,
      texts: t,
      threadId: flags.thread,
      user: USER,
      model: flags.model,
      signal: stop.signal,
    });
  } finally {
    lines.close();
    await desk.close();
    await servers.close();
    threads.close();
  }
}

/** `npm start`: the servers, and the chat where there is a terminal. */
async function runStart(flags: DeskFlags): Promise<void> {
  if (process.stdin.isTTY && process.stdout.isTTY) return runChat(flags);
  const t = textsFor(flags.lang);
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const stop = stopSignal();
  const servers = await reachServers(flags, openDataDirectory(flags.data), say);
  for (const name of SERVER_NAMES) say(t.chat.serving(`${t.offline.serverNames[name] ?? name} ${servers.urls[name]}`));
  say(t.chat.stopHint);
  const alive = setInterval(() => undefined, 60_000); // until a signal comes
  await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve(), { once: true }));
  clearInterval(alive);
  await servers.close();
  say(t.chat.stopped);
}

/** One server in this process, for a supervisor or by hand. */
async function runServe(which: string, flags: CommonOptions & { port?: number; anyPort?: boolean }): Promise<void> {
  const names = which === "all" ? SERVER_NAMES : SERVER_NAMES.filter((name) => name === which);
  if (names.length === 0)
    throw new ConfigError(`There is no server "${which}"; choose order, notification or all`, { code: "server" });
  if (names.length > 1 && flags.port !== undefined) {
    throw new ConfigError("--port names the port of one server; with `all` they listen on 8030 and 8031", {
      code: "flag",
    });
  }
  const dataDirectory = openDataDirectory(flags.data);
  const stop = stopSignal();
  process.on("disconnect", () => stop.abort()); // the supervisor is gone
  const running = [];
  for (const name of names) {
    const server = createDeskServer(name, { dataDirectory, lang: flags.lang, smsWebhook: flags.smsWebhook });
    running.push(server);
    const { url, moved } = await listenOn(server, flags.port ?? PORTS[name], flags.anyPort ?? false);
    if (process.send) process.send({ url, moved });
    else process.stdout.write(`${name} ${url}\n`);
  }
  await new Promise<void>((resolve) => stop.signal.addEventListener("abort", () => resolve(), { once: true }));
  await Promise.allSettled(running.map((server) => server.close()));
}

const port = (text: string): number => {
  if (/^\d+$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw new InvalidArgumentError("expected a port from 0 to 65535");
};
const common = (command: Command): Command =>
  command
    .option("--data <directory>", "where orders and threads are kept", process.env.TENON_DATA_DIR ?? ".tenon")
    .addOption(new Option("--lang <language>", "language of all texts").choices(["zh", "en"]).default("zh"))
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
    .option("--notification-url <url>", "use a notification server that runs elsewhere");

const program = new Command("after-sales")
  .description("An after-sales desk on two MCP servers and one agent")
  .showSuggestionAfterError();
deskFlags(program.command("start").description("servers and chat; without a terminal only the servers")).action(
  runStart,
);
deskFlags(program.command("chat").description("chat in the terminal, or piped line by line")).action(runChat);
common(program.command("serve <server>").description("one server: order, notification or all"))
  .option("--port <port>", "port to listen on", port)
  .option("--any-port", "take a free port when the wanted one is in use")
  .action(runServe);

const entry = process.argv[1];
if (entry !== undefined && realpathSync(entry) === realpathSync(fileURLToPath(import.meta.url))) {
  try {
    await program.parseAsync();
    process.exit(0);
  } catch (error) {
    // the program's edge: a person reads one line, never a trace
    const message =
      error instanceof TenonError
        ? error.message
        : `unexpected error: ${error instanceof Error ? error.message : error}`;
    if (process.send) process.send({ error: message });
    process.stderr.write(`after-sales: ${message}\n`);
    process.exit(1);
  }
}
