import { chmodSync } from "node:fs";
import { createServer as createHttpServer, type Server as NodeServer, type RequestListener } from "node:http";
import { createServer as createHttpsServer, Server as HttpsServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import { getRequestListener } from "@hono/node-server";
import { ConfigError, ConnectionError, isLoopback } from "@tenon/core";
import { urlHost } from "@tenon/core/internal";
import { verdictOn } from "../fast/verdict.ts";
import type { ServerLog } from "../log.ts";
import type { Registrar } from "../register/types.ts";
import { REQUEST_TIMEOUT_MS } from "./body.ts";
import { behindProxies, withPublicTarget } from "./forwarding.ts";
import type { HttpOptions, HttpSide } from "./http.ts";
import { remoteAddressOf } from "./remote-address.ts";
import { openTls, type TlsOptions } from "./tls.ts";
import { compileTrustedProxies } from "./trusted-proxies.ts";
import { prepareUnixSocket } from "./unix-socket.ts";

/** Where a server listens. */
export interface ListenOptions {
  /** TCP port; 0 takes a free one. Default 8000. */
  port?: number;
  /** Address to bind. Default 127.0.0.1; anything but loopback needs `allowedHosts`. */
  host?: string;
  /** Path of the endpoint. Default `/mcp`. */
  path?: string;
  /**
   * Speaks TLS 1.2 or 1.3. `{ certFile, keyFile }` names PEM files, which are read again when they change, without cutting
   * connections; `{ cert, key }` is the PEM itself.
   */
  tls?: TlsOptions;
  /** Path of a unix socket to listen on instead of a port; only this user may connect (mode 0600). */
  unixSocket?: string;
  /** Tells a registry where this server is, from when it listens until it closes: `consul` of `@tenon/server/register`. */
  register?: Registrar | readonly Registrar[];
}

/** A listening server. */
export interface Listening {
  /** The endpoint's full address, for example `http://127.0.0.1:8000/mcp`. */
  readonly url: string;
  /** The TCP port that was taken; undefined on a unix socket. */
  readonly port: number | undefined;
  /** Stops accepting, gives running requests up to `graceMs` (default 1,000), then cuts what is left. */
  close(graceMs?: number): Promise<void>;
}

/** Connections that may wait to be accepted: Node's 511 resets clients when two thousand arrive at once. */
const BACKLOG = 4_096;

/** Where a server may listen without `allowedHosts`: under these names it answers anyway. */
const OWN_NAMES = new Set(["127.0.0.1", "::1", "localhost"]);

function explain(error: NodeJS.ErrnoException, { unixSocket }: ListenOptions, where: string): ConnectionError {
  const other = unixSocket === undefined ? "port" : "path";
  const forbidden =
    unixSocket === undefined ? "choose a port above 1023" : "check the rights of its folder, or choose another path";
  const todo =
    error.code === "EADDRINUSE"
      ? `is in use; stop the program that has it or choose another ${other}`
      : error.code === "EACCES"
        ? `may not be opened by this user; ${forbidden}`
        : `could not be opened (${error.code ?? error.message})`;
  return new ConnectionError(`${where} ${todo}`, {
    code: error.code === "EADDRINUSE" ? "port_in_use" : "listen",
    cause: error,
  });
}

/** Cuts what is still connected, also those that have not finished their handshake, which node's server does not count. */
function cutter(server: NodeServer): () => void {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return () => {
    for (const socket of sockets) socket.destroy();
  };
}

/**
 * What to say of a server that takes tokens where others can read them; undefined when they travel encrypted, stay on this machine,
 * or a proxy in front is known of, by the public address or as a trusted one.
 */
export function clearTextWarning(
  { host = "127.0.0.1", tls, unixSocket, trustedProxies = [] }: ListenOptions & Pick<HttpOptions, "trustedProxies">,
  resource: string | undefined,
): string | undefined {
  const proxied = trustedProxies.length > 0 || resource?.startsWith("https:");
  if (tls || unixSocket || isLoopback(host) || proxied) return undefined;
  return `Tokens travel to ${host} in clear text: give \`tls\`, or, behind a proxy that speaks TLS, the public address as \`resource\` or \`http.trustedProxies\``;
}

/**
 * Serves the HTTP side on a node HTTP server.
 * @param first makes a listener that answers what it can and hands the rest on
 * @param log hears of certificates that expired, were replaced or cannot be used
 * @throws ConnectionError `code: "port_in_use"` naming the address; ConfigError `"tls"`, `"unix_socket"`, `"trusted_proxies"`,
 * `"allowed_hosts"`, `"listen_options"`
 */
export async function listen(
  side: HttpSide,
  options: ListenOptions & Pick<HttpOptions, "allowedHosts" | "requestTimeoutMs" | "trustedProxies">,
  first: (path: string, otherwise: RequestListener) => RequestListener,
  log: ServerLog,
): Promise<Listening> {
  const { port = 8000, host = "127.0.0.1", path = "/mcp", unixSocket } = options;
  if (unixSocket !== undefined && (options.port ?? options.host) !== undefined) {
    throw new ConfigError(
      "listen(options) has unixSocket together with port or host; a server listens on one of them",
      {
        code: "listen_options",
      },
    );
  }
  if (unixSocket === undefined && !OWN_NAMES.has(host) && !options.allowedHosts) {
    throw new ConfigError(
      `Listening on ${host} makes the server reachable from other machines: name the host names clients use in \`allowedHosts\``,
      { code: "allowed_hosts" },
    );
  }
  const trusted = options.trustedProxies?.length ? compileTrustedProxies(options.trustedProxies) : undefined;
  const tls = options.tls && (await openTls(options.tls, log));
  const web = getRequestListener(
    async (request, { incoming }) => {
      const { pathname } = new URL(request.url);
      return pathname === path || side.serves(pathname, path)
        ? side.fetch(request, {
            endpoint: path,
            verdict: verdictOn(incoming),
            remoteAddress: remoteAddressOf(incoming),
          })
        : Response.json({ error: `Nothing here; the MCP endpoint is ${path}` }, { status: 404 });
    },
    { overrideGlobalObjects: false },
  );
  const listener = trusted
    ? behindProxies(trusted, unixSocket !== undefined, first(path, withPublicTarget(web)))
    : first(path, web);
  const requestTimeout = options.requestTimeoutMs ?? REQUEST_TIMEOUT_MS;
  const limits = {
    // a client that sends slowly may hold a socket, not for ever
    headersTimeout: Math.min(10_000, requestTimeout),
    requestTimeout,
    connectionsCheckingInterval: Math.min(5_000, requestTimeout / 2),
  };
  const server: NodeServer = tls
    ? createHttpsServer({ ...tls.context, ...limits, handshakeTimeout: limits.headersTimeout }, listener)
    : createHttpServer(limits, listener);
  const cut = tls ? cutter(server) : () => server.closeAllConnections();
  // longer than the idle time of common proxies, so that it is not the server that cuts a connection about to be used
  server.keepAliveTimeout = 75_000;
  if (unixSocket !== undefined) await prepareUnixSocket(unixSocket);
  await new Promise<void>((resolve, reject) => {
    const where = unixSocket === undefined ? `Port ${port} on ${host}` : `Socket ${unixSocket}`;
    const place = unixSocket === undefined ? { port, host } : { path: unixSocket };
    server.once("error", (error) => reject(explain(error, options, where)));
    server.listen({ ...place, backlog: BACKLOG }, () => resolve());
  });
  if (unixSocket !== undefined) chmodSync(unixSocket, 0o600);
  // follows only what listens: a server that did not open leaves nothing behind
  const unfollow = server instanceof HttpsServer ? tls?.follow(server) : undefined;
  const address = unixSocket !== undefined ? undefined : (server.address() as AddressInfo); // a TCP server has one once it listens
  const name = urlHost(host);
  return {
    url: address ? `${tls ? "https" : "http"}://${name}:${address.port}${path}` : `unix:${unixSocket}:${path}`,
    port: address?.port,
    async close(graceMs = 1_000) {
      unfollow?.();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeIdleConnections();
      const late = setTimeout(cut, graceMs);
      await closed;
      clearTimeout(late);
    },
  };
}
