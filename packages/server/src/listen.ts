import { chmodSync, rmSync, statSync } from "node:fs";
import { createServer as createHttpServer, type Server as NodeServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, connect } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { ConfigError, ConnectionError } from "@tenon/core";
import { REQUEST_TIMEOUT_MS } from "./body.ts";
import { verdictOn } from "./fast/verdict.ts";
import type { HttpOptions, HttpSide } from "./http.ts";

export interface ListenOptions {
  /** TCP port; 0 takes a free one. Default 8000. */
  port?: number;
  /** Address to bind. Default 127.0.0.1; anything but loopback needs `allowedHosts`. */
  host?: string;
  /** Path of the endpoint. Default `/mcp`. */
  path?: string;
  /** Certificate and key (PEM). */
  tls?: { cert: string | Buffer; key: string | Buffer };
  /** Path of a unix socket to listen on instead of a port. */
  unixSocket?: string;
}

/** A listening server. */
export interface Listening {
  /** The endpoint's full address, for example `http://127.0.0.1:8000/mcp`. */
  readonly url: string;
  readonly port: number | undefined;
  /** Stops accepting, gives running requests up to `graceMs` (default 1,000), then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

/** Connections that may wait to be accepted: Node's 511 resets clients when two thousand arrive at once. */
const BACKLOG = 4_096;

const LOOPBACK = new Set(["127.0.0.1", "::1", "localhost"]);

function explain(error: NodeJS.ErrnoException, where: string): ConnectionError {
  const todo =
    error.code === "EADDRINUSE"
      ? "is in use; stop the program that has it or choose another port"
      : error.code === "EACCES"
        ? "may not be opened by this user; choose a port above 1023"
        : `could not be opened (${error.code ?? error.message})`;
  return new ConnectionError(`${where} ${todo}`, {
    code: error.code === "EADDRINUSE" ? "port_in_use" : "listen",
    cause: error,
  });
}

/** Only sockets are ever removed, whatever the path names. */
const isSocket = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isSocket() === true;

/** Whether a socket file is what a process left that did not end by itself: nobody answers it. */
function isLeftOver(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path);
    probe.once("connect", () => {
      probe.destroy();
      resolve(false);
    });
    probe.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"));
  });
}

/**
 * What to say of a server that takes tokens where others can read them; undefined when they travel encrypted, stay on this machine,
 * or its public address says that a proxy in front speaks TLS.
 */
export function clearTextWarning(
  { host = "127.0.0.1", tls, unixSocket }: ListenOptions,
  resource: string | undefined,
): string | undefined {
  if (tls || unixSocket || LOOPBACK.has(host) || resource?.startsWith("https:")) return undefined;
  return `Tokens travel to ${host} in clear text: give \`tls\`, or, behind a proxy that speaks TLS, the public address as \`resource\``;
}

/**
 * Serves the HTTP side on a node HTTP server.
 * @param first makes a listener that answers what it can and hands the rest on
 * @throws ConnectionError `code: "port_in_use"` naming the address
 */
export async function listen(
  side: HttpSide,
  options: ListenOptions & Pick<HttpOptions, "allowedHosts" | "requestTimeoutMs">,
  first: (path: string, otherwise: RequestListener) => RequestListener,
): Promise<Listening> {
  const { port = 8000, host = "127.0.0.1", path = "/mcp", tls, unixSocket } = options;
  if (!unixSocket && !LOOPBACK.has(host) && !options.allowedHosts) {
    throw new ConfigError(
      `Listening on ${host} makes the server reachable from other machines: name the host names clients use in \`allowedHosts\``,
      { code: "allowed_hosts" },
    );
  }
  const otherwise = getRequestListener(
    async (request, { incoming }) => {
      const { pathname } = new URL(request.url);
      return pathname === path || side.front?.isMetadata(pathname, path)
        ? side.fetch(request, { endpoint: path, verdict: verdictOn(incoming) })
        : Response.json({ error: `Nothing here; the MCP endpoint is ${path}` }, { status: 404 });
    },
    { overrideGlobalObjects: false },
  );
  const listener = first(path, otherwise);
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const limits = {
    // a client that sends slowly may hold a socket, not for ever
    headersTimeout: Math.min(10_000, requestTimeout),
    requestTimeout,
    connectionsCheckingInterval: Math.min(5_000, requestTimeout / 2),
  };
  const server: NodeServer = tls
    ? createHttpsServer({ ...tls, ...limits }, listener)
    : createHttpServer(limits, listener);
  // longer than the idle time of common proxies, so that it is not the server that cuts a connection about to be used
  server.keepAliveTimeout = 75_000;
  if (unixSocket && isSocket(unixSocket) && (await isLeftOver(unixSocket))) rmSync(unixSocket);
  await new Promise<void>((resolve, reject) => {
    const where = unixSocket ? `Socket ${unixSocket}` : `Port ${port} on ${host}`;
    server.once("error", (error) => reject(explain(error, where)));
    server.listen({ ...(unixSocket ? { path: unixSocket } : { port, host }), backlog: BACKLOG }, () => resolve());
  });
  if (unixSocket) chmodSync(unixSocket, 0o600);
  const address = unixSocket ? undefined : (server.address() as AddressInfo); // a TCP server has one once it listens
  const name = host.includes(":") ? `[${host}]` : host;
  return {
    url: address ? `${tls ? "https" : "http"}://${name}:${address.port}${path}` : `unix:${unixSocket}:${path}`,
    port: address?.port,
    async close(graceMs = 1_000) {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const cut = setTimeout(() => server.closeAllConnections(), graceMs);
      await closed;
      clearTimeout(cut);
    },
  };
}
