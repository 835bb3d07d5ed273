import { fileURLToPath } from "node:url";
import { ConfigError, isLoopback } from "@tenon/core";
import { type DeskFlags, placeOf, type ServeFlags, type WorkerFlags } from "./flags.ts";
import { PORTS, SERVER_NAMES, type ServerName } from "./servers/names.ts";
import { type DeskServer, listenOn, openDeskServer } from "./servers/serve.ts";
import { startServers } from "./servers/supervisor.ts";
import { stopOnSignals } from "./stop.ts";
import { openTelemetry, type Telemetry } from "./telemetry.ts";
import { textsFor } from "./texts/index.ts";

/** A server that cannot close in this time is ended: nothing may outlive its supervisor. */
const CLOSE_MS = 3_000;

interface Reached {
  /** Where each server is. */
  readonly urls: Readonly<Record<ServerName, string>>;
  /** Stops those that were started here. */
  close(): Promise<void>;
}

/**
 * The desk's servers: one whose address was given is used as it is, the others are started.
 * @param say tells a person what they should know about a server, in one line
 */
export async function reachServers(flags: DeskFlags, say: (line: string) => void): Promise<Reached> {
  const t = textsFor(flags.lang);
  const title = (name: ServerName): string => t.offline.serverNames[name] ?? name;
  const given: Partial<Record<ServerName, string>> = {
    ...(flags.orderUrl !== undefined && { order: flags.orderUrl }),
    ...(flags.notificationUrl !== undefined && { notification: flags.notificationUrl }),
  };
  for (const [name, url] of Object.entries(given)) {
    if (!/^https?:$/.test(URL.parse(url)?.protocol ?? ""))
      throw new ConfigError(
        `--${name}-url ${url} is no http address; expected something like http://127.0.0.1:8030/mcp`,
        {
          code: "flag",
        },
      );
  }
  const servers = await startServers({
    entry: fileURLToPath(new URL("./main.js", import.meta.url)),
    place: placeOf(flags),
    lang: flags.lang,
    smsWebhook: flags.smsWebhook,
    inProcess: flags.all ?? false,
    names: SERVER_NAMES.filter((name) => given[name] === undefined),
    ports: {
      ...(flags.orderPort !== undefined && { order: flags.orderPort }),
      ...(flags.notificationPort !== undefined && { notification: flags.notificationPort }),
    },
    onExit: (name) => say(t.chat.serverExited(title(name))),
  });
  // each was given or started
  const urls = { ...servers.urls, ...given } as Reached["urls"];
  for (const name of servers.moved) say(t.chat.portTaken(title(name), PORTS[name], urls[name]));
  return { urls, close: servers.close };
}

/** `npm start` without a terminal: the servers, until a signal comes. */
export async function runServers(flags: DeskFlags): Promise<void> {
  const t = textsFor(flags.lang);
  const say = (line: string): void => void process.stdout.write(`${line}\n`);
  const stop = stopOnSignals();
  const telemetry = await openTelemetry("after-sales", flags);
  const servers = await reachServers(flags, say);
  for (const name of SERVER_NAMES) say(t.chat.serving(`${t.offline.serverNames[name] ?? name} ${servers.urls[name]}`));
  say(t.chat.stopHint);
  await aborted(stop.signal);
  await servers.close();
  await telemetry?.close();
  say(t.chat.stopped);
}

/** `serve`: one server (or both) in this process, for a supervisor or by hand. */
export async function runServe(which: string, flags: ServeFlags): Promise<void> {
  const stop = stopOnSignals();
  if (process.send) {
    process.on("disconnect", () => stop.abort()); // the supervisor is gone
    if (!process.connected) return;
  }
  const names = which === "all" ? SERVER_NAMES : SERVER_NAMES.filter((name) => name === which);
  if (names.length === 0)
    throw new ConfigError(`There is no server "${which}"; choose order, notification or all`, { code: "server" });
  for (const [flag, given] of Object.entries({ "--port": flags.port, "--admin-port": flags.adminPort })) {
    if (names.length === 1 || given === undefined) continue;
    throw new ConfigError(`${flag} names the port of one server; with \`all\` there are two`, { code: "flag" });
  }
  if (names.length > 1 && flags.audience !== undefined) {
    throw new ConfigError("--audience names one server; with `all`, a token for one would open the other", {
      code: "flag",
    });
  }
  const running = [];
  const telemetry = await openTelemetry(names.length === 1 ? `after-sales-${which}` : "after-sales", flags);
  for (const name of names) {
    const { lang, smsWebhook, issuer, jwks, audience, allowedHost: allowedHosts } = flags;
    const place = placeOf(flags);
    const concurrency = flags.worker === false ? 0 : undefined;
    const trust = { issuer, jwks, audience };
    const server = await openDeskServer(name, { place, lang, smsWebhook, allowedHosts, concurrency, ...trust });
    running.push(server);
    await openAdmin(server, flags, telemetry);
    const where = whereToListen(name, flags);
    const { url, moved } = await listenOn(server, where, flags.anyPort ?? false);
    if (process.send) process.send({ url, moved });
    else process.stdout.write(`${name} ${url}\n`);
  }
  await aborted(stop.signal);
  setTimeout(() => process.exit(0), CLOSE_MS).unref();
  await Promise.allSettled(running.map((server) => server.close()));
  await telemetry?.close();
}

/** @throws ConfigError `code: "flag"` for flags that say too little together */
function whereToListen(name: ServerName, { port = PORTS[name], host, allowedHost, tlsCert, tlsKey }: ServeFlags) {
  if (host !== undefined && !isLoopback(host) && allowedHost === undefined) {
    throw new ConfigError(
      `--host ${host} is for other machines: say with --allowed-host under which names they reach it`,
      {
        code: "flag",
      },
    );
  }
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new ConfigError("--tls-cert and --tls-key belong together", { code: "flag" });
  }
  const tls = tlsCert !== undefined && tlsKey !== undefined && { certFile: tlsCert, keyFile: tlsKey };
  return { port, ...(host !== undefined && { host }), ...(tls && { tls }) };
}

/** The admin port, where one is wanted. First of all: it says that the process lives while the database is not there yet. */
async function openAdmin(
  server: DeskServer,
  flags: Pick<ServeFlags, "adminPort" | "adminHost">,
  metrics: Telemetry | undefined,
): Promise<void> {
  const { adminPort: port, adminHost: host } = flags;
  if (port === undefined) return;
  const { url } = await server.admin({ port, ...(host !== undefined && { host }), ...(metrics && { metrics }) });
  if (!process.send) process.stdout.write(`admin ${url}\n`);
}

/** `worker`: runs tasks of the order server without serving it, until a signal comes. */
export async function runWorker(flags: WorkerFlags): Promise<void> {
  const stop = stopOnSignals();
  const telemetry = await openTelemetry("after-sales-worker", flags);
  const server = await openDeskServer("order", { place: placeOf(flags), lang: flags.lang, onlyTasks: true });
  await openAdmin(server, flags, telemetry);
  await server.work(flags.concurrency === undefined ? {} : { concurrency: flags.concurrency });
  process.stdout.write("worker is ready\n");
  await aborted(stop.signal);
  setTimeout(() => process.exit(0), CLOSE_MS).unref();
  await server.close();
  await telemetry?.close();
}

/** Waits for the signal, and keeps the program alive meanwhile. */
async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  const alive = setInterval(() => undefined, 60_000);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  clearInterval(alive);
}
