import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, statSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { ConnectionError, isRecord } from "@tenon/core";
import { SERVER_NAMES, type ServerName } from "../agent/desk.ts";
import { createDeskServer, listenOn, PORTS, type ServeOptions } from "./serve.ts";

export interface Supervised {
  /** Where each server listens; the same for the supervisor's whole life. */
  readonly urls: Readonly<Record<ServerName, string>>;
  /** Servers whose usual port was taken. */
  readonly moved: readonly ServerName[];
  close(): Promise<void>;
}

export interface SupervisorOptions extends ServeOptions {
  /** The program's own entry file, started again with `serve <name>`. */
  entry: string;
  ports?: Partial<Record<ServerName, number>>;
  /** Both servers inside this process instead of one process each. */
  inProcess?: boolean;
  onExit?: (name: ServerName) => void;
}

const START_MS = 15_000;
const LOG_BYTES = 5 * 1024 * 1024;
const MAX_RESTARTS = 10;

/** The server's own log goes to a file beside the data; a large one starts over. */
function logFile(dataDirectory: string, name: ServerName): string {
  const path = join(dataDirectory, `${name}-server.log`);
  try {
    if (statSync(path).size > LOG_BYTES) truncateSync(path);
  } catch {
    // no log yet
  }
  return path;
}

/** Starts one server process and waits until it says where it listens. */
async function startChild(
  name: ServerName,
  port: number,
  fallback: boolean,
  options: SupervisorOptions,
): Promise<{ child: ChildProcess; url: string; moved: boolean }> {
  const args = ["serve", name, "--port", String(port), "--data", options.dataDirectory, "--lang", options.lang];
  if (fallback) args.push("--any-port");
  if (options.smsWebhook) args.push("--sms-webhook", options.smsWebhook);
  const child = spawn(process.execPath, [...process.execArgv, options.entry, ...args], {
    // the channel is a lifeline: when this process dies, the child sees it close and ends
    stdio: ["ignore", "ignore", "pipe", "ipc"],
    // Ctrl-C reaches the whole group; the supervisor stops its children itself
    detached: true,
  });
  const log = createWriteStream(logFile(options.dataDirectory, name), { flags: "a" });
  child.stderr?.pipe(log);
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
      reject(
        new ConnectionError(`The ${name} server ended at start with code ${code}; see ${log.path}`, {
          code: "start",
          server: name,
        }),
      );
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

/** A server process that is started again when it dies, on the same port. */
async function supervise(
  name: ServerName,
  options: SupervisorOptions,
): Promise<{ url: string; moved: boolean; close(): Promise<void> }> {
  const wanted = options.ports?.[name];
  const first = await startChild(name, wanted ?? PORTS[name], wanted === undefined, options);
  let { child } = first;
  let closed = false;
  let restarts = 0;
  const watch = (): void => {
    child.once("exit", () => {
      if (closed || restarts >= MAX_RESTARTS) return;
      restarts += 1;
      options.onExit?.(name);
      const retry = setTimeout(() => {
        if (closed) return;
        startChild(name, Number(new URL(first.url).port), false, options).then(
          (again) => {
            if (closed) return void stopChild(again.child);
            child = again.child;
            watch();
          },
          () => undefined, // its log says why; calls report the server as unreachable
        );
      }, 200 * restarts);
      retry.unref();
    });
  };
  watch();
  return {
    url: first.url,
    moved: first.moved,
    async close() {
      closed = true;
      await stopChild(child);
    },
  };
}

async function runInside(
  name: ServerName,
  options: SupervisorOptions,
): Promise<{ url: string; moved: boolean; close(): Promise<void> }> {
  const server = createDeskServer(name, options);
  const wanted = options.ports?.[name];
  const { url, moved } = await listenOn(server, wanted ?? PORTS[name], wanted === undefined);
  return { url, moved, close: () => server.close() };
}

/**
 * Runs the desk's servers, one process each (or inside this one), and keeps them running.
 * @throws ConnectionError when one does not start; the other is stopped
 */
export async function startServers(options: SupervisorOptions): Promise<Supervised> {
  const run = options.inProcess ? runInside : supervise;
  const started = await Promise.allSettled(SERVER_NAMES.map((name) => run(name, options)));
  const running = started.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
  const close = async (): Promise<void> => void (await Promise.allSettled(running.map((server) => server.close())));
  const [order, notification] = running;
  const failure = started.find((result) => result.status === "rejected");
  if (failure || !order || !notification) {
    await close();
    throw failure?.reason;
  }
  return {
    urls: { order: order.url, notification: notification.url },
    moved: SERVER_NAMES.filter((_, i) => running[i]?.moved),
    close,
  };
}
