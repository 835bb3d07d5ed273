import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, type WriteStream } from "node:fs";
import { ConnectionError, isRecord } from "@tenon/core";
import type { Place } from "../database/place.ts";
import { logFile } from "../log-file.ts";
import { PORTS, type ServerName } from "./names.ts";
import type { ServeOptions } from "./options.ts";
import { listenOn, openDeskServer } from "./serve.ts";

export interface Supervised {
  /** Where each server listens; the same for the supervisor's whole life. */
  readonly urls: Readonly<Partial<Record<ServerName, string>>>;
  /** Servers whose usual port was taken. */
  readonly moved: readonly ServerName[];
  close(): Promise<void>;
}

export interface SupervisorOptions extends ServeOptions {
  /** The program's own entry file, started again with `serve <name>`. */
  entry: string;
  /** Which servers to run. */
  names: readonly ServerName[];
  ports?: Partial<Record<ServerName, number>>;
  /** Both servers inside this process instead of one process each. */
  inProcess?: boolean;
  onExit?: (name: ServerName) => void;
}

const START_MS = 15_000;
/** Wait before a restart; doubled after each failure, up to the second number. */
const RESTART_MS = 200;
const RESTART_MAX_MS = 5_000;
/** A server that ran this long has not failed at its start. */
const STABLE_MS = 30_000;

/** Settings that are for this process, or for servers that are started by hand: a server of the desk takes the desk's tokens. */
const NOT_INHERITED = /^TENON_((ORDER|NOTIFICATION)_TOKEN|ISSUER|JWKS|AUDIENCE)$/;

/** Where a server process keeps things: its address may hold a password, which everybody could read on a command line. */
function environmentOf({ url, schema }: Place): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !NOT_INHERITED.test(name));
  const database = { TENON_DATABASE_URL: url, TENON_DATABASE_SCHEMA: schema };
  return Object.fromEntries([...inherited, ...Object.entries(database).filter(([, value]) => value !== undefined)]);
}

/** The server's own log goes to a file beside the data. */
function openLog(dataDirectory: string, name: ServerName): WriteStream {
  const log = createWriteStream(logFile(dataDirectory, `${name}-server`), { flags: "a" });
  log.on("error", () => undefined); // a full disk is no reason to stop serving
  return log;
}

/** Starts one server process and waits until it says where it listens. */
async function startChild(
  name: ServerName,
  port: number,
  fallback: boolean,
  options: SupervisorOptions,
): Promise<{ child: ChildProcess; url: string; moved: boolean }> {
  const args = ["serve", name, "--port", String(port), "--data", options.place.directory, "--lang", options.lang];
  if (fallback) args.push("--any-port");
  if (options.smsWebhook) args.push("--sms-webhook", options.smsWebhook);
  const child = spawn(process.execPath, [...process.execArgv, options.entry, ...args], {
    // the channel is a lifeline: when this process dies, the child sees it close and ends
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    env: environmentOf(options.place),
    // Ctrl-C reaches the whole group; the supervisor stops its children itself
    detached: true,
  });
  const log = openLog(options.place.directory, name);
  child.stderr?.pipe(log);
  log.once("error", () => child.stderr?.resume()); // or the child would wait for a reader
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      reject(
        new ConnectionError(`The ${name} server did not start within ${START_MS} ms`, { code: "start", server: name }),
      );
    }, START_MS);
    child.once("error", reject);
    child.once("exit", (code) => {
      clearTimeout(timer);
      const ended = new ConnectionError(`The ${name} server ended at start with code ${code}; see ${log.path}`, {
        code: "start",
        server: name,
      });
      // what it said last may still be on its way
      if (child.connected) child.once("disconnect", () => reject(ended));
      else reject(ended);
    });
    child.once("message", (message) => {
      clearTimeout(timer);
      if (isRecord(message) && typeof message.url === "string")
        resolve({ child, url: message.url, moved: message.moved === true });
      else
        reject(
          new ConnectionError(String(isRecord(message) ? message.error : message), { code: "start", server: name }),
        );
    });
  });
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  child.kill("SIGTERM");
  const kill = setTimeout(() => child.kill("SIGKILL"), 3_000);
  await gone;
  clearTimeout(kill);
}

/** A server that runs, and how to end it. */
interface Running {
  readonly url: string;
  readonly moved: boolean;
  close(): Promise<void>;
}

/** A server process that is started again when it dies, on the same port, for as long as it takes. */
async function supervise(name: ServerName, options: SupervisorOptions): Promise<Running> {
  const wanted = options.ports?.[name];
  const first = await startChild(name, wanted ?? PORTS[name], wanted === undefined, options);
  const port = Number(new URL(first.url).port);
  let { child } = first;
  let closed = false;
  let failures = 0;
  let restarting: Promise<void> | undefined;

  async function restart(): Promise<void> {
    while (!closed) {
      await new Promise((resolve) => setTimeout(resolve, Math.min(RESTART_MS * 2 ** failures, RESTART_MAX_MS)).unref());
      if (closed) return;
      failures += 1;
      try {
        ({ child } = await startChild(name, port, false, options));
        if (closed) await stopChild(child);
        else watch();
        return;
      } catch {
        // its log says why, and calls report the server as unreachable: try again
      }
    }
  }
  function watch(): void {
    const since = Date.now();
    child.once("exit", () => {
      if (closed) return;
      if (Date.now() - since > STABLE_MS) failures = 0;
      options.onExit?.(name);
      restarting = restart();
    });
  }
  watch();
  return {
    url: first.url,
    moved: first.moved,
    async close() {
      closed = true;
      await stopChild(child);
      // a child that is just being started ends with this process at the latest: its lifeline breaks
      await Promise.race([restarting, new Promise((resolve) => setTimeout(resolve, RESTART_MS).unref())]);
    },
  };
}

async function runInside(name: ServerName, options: SupervisorOptions): Promise<Running> {
  // its log goes where that of a server process goes, not between the lines of a conversation
  const file = openLog(options.place.directory, name);
  const { place, lang, smsWebhook } = options;
  const log = (line: string): void => void file.write(`${line}\n`);
  const server = await openDeskServer(name, { place, lang, smsWebhook, log });
  const wanted = options.ports?.[name];
  const { url, moved } = await listenOn(server, { port: wanted ?? PORTS[name] }, wanted === undefined);
  return { url, moved, close: () => server.close().finally(() => file.end()) };
}

/**
 * Runs servers of the desk, one process each (or inside this one), and keeps them running.
 * @throws ConnectionError when one does not start; the others are stopped
 */
export async function startServers(options: SupervisorOptions): Promise<Supervised> {
  const { names } = options;
  const run = options.inProcess ? runInside : supervise;
  const started = await Promise.allSettled(names.map((name) => run(name, options)));
  const running = new Map<ServerName, Running>();
  for (const [i, name] of names.entries()) {
    const result = started[i];
    if (result?.status === "fulfilled") running.set(name, result.value);
  }
  const close = async (): Promise<void> =>
    void (await Promise.allSettled([...running.values()].map((server) => server.close())));
  const failure = started.find((result) => result.status === "rejected");
  if (failure) {
    await close();
    throw failure.reason;
  }
  const urls: Supervised["urls"] = Object.fromEntries([...running].map(([name, { url }]) => [name, url]));
  return { urls, moved: names.filter((name) => running.get(name)?.moved), close };
}
