import { isLoopback } from "@tenon/core";
import { Agent, buildConnector, Client, type Dispatcher, Pool, ProxyAgent } from "undici";
import type { HttpServerConfig } from "../types/servers.ts";
import { proxyFor } from "./proxy.ts";

/** How requests reach one server. */
export interface Route {
  /** For requests that somebody waits for. */
  readonly dispatcher: Dispatcher;
  /** For streams that only listen: their sockets do not hold the process open. */
  readonly quiet: Dispatcher;
  /** The proxy in between, without its credentials. */
  readonly proxy?: string;
}

// no limit of the pool's own: every wait is bounded by the call it belongs to, and a listening stream may be silent
const NO_LIMITS = { headersTimeout: 0, bodyTimeout: 0 } as const;

/** Connections to one origin at most; further requests wait for one, as long as their own time allows. */
const MAX_CONNECTIONS = 100;
/** How many of them stay open with nothing to do. */
const MAX_IDLE = 20;
/** What the others get instead of the usual time to wait for the next request, in milliseconds. */
const NO_WAIT = { keepAliveTimeout: 1, keepAliveMaxTimeout: 1 } as const;

/**
 * The pool of one origin. undici has no bound for connections with nothing to do, and gives work to the oldest that is free: so the first
 * twenty may wait for more, and those beyond, which only a burst needs, end with their request.
 */
function poolOf(origin: string | URL, options: Pool.Options): Pool {
  const waiting = new Set<Client>();
  const factory = (to: URL, given: object): Client => {
    const stays = waiting.size < MAX_IDLE;
    const client = new Client(to, stays ? given : { ...given, ...NO_WAIT });
    if (!stays) return client;
    waiting.add(client);
    // the pool lets go of one that could not connect
    client.on("connectionError", () => waiting.delete(client));
    return client;
  };
  return new Pool(origin, { ...options, connections: MAX_CONNECTIONS, factory });
}

function connectOptions({ ca, socketPath, connectTimeoutMs }: HttpServerConfig): buildConnector.BuildOptions {
  return {
    timeout: connectTimeoutMs ?? 5_000,
    // whatever NODE_TLS_REJECT_UNAUTHORIZED says
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(socketPath !== undefined && { socketPath }),
  };
}

/** A connector whose sockets never hold the process open; the pool would otherwise take hold of a busy one. */
export function quietly(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...outcome) => {
      const [, socket] = outcome;
      if (socket) {
        socket.unref();
        socket.ref = () => socket;
      }
      callback(...outcome);
    });
}

/** The kept-alive connections of one client, shared by its servers; closed with it. */
export class Pools {
  readonly #routes = new Map<string, Route>();
  readonly #all = new Set<Dispatcher>();

  /** The way to a server; the same for all servers that are reached the same way. */
  route(config: HttpServerConfig): Route {
    const url = new URL(config.url);
    const direct = config.socketPath !== undefined || isLoopback(url.hostname);
    const proxy = direct ? undefined : proxyFor(url, process.env);
    const options = connectOptions(config);
    const key = JSON.stringify([options, proxy]);
    const known = this.#routes.get(key);
    if (known) return known;
    const route = proxy === undefined ? this.#direct(options) : this.#through(proxy, options);
    this.#routes.set(key, route);
    return route;
  }

  /** Cuts every connection. */
  async close(): Promise<void> {
    const all = [...this.#all];
    this.#all.clear();
    this.#routes.clear();
    await Promise.all(all.map((dispatcher) => dispatcher.destroy().catch(() => {})));
  }

  #direct(options: buildConnector.BuildOptions): Route {
    const connect = buildConnector(options);
    const dispatcher = this.#keep(new Agent({ ...NO_LIMITS, connect, factory: poolOf }));
    const quiet = this.#keep(new Agent({ ...NO_LIMITS, connect: quietly(connect) }));
    return { dispatcher, quiet };
  }

  #through(proxy: string, options: buildConnector.BuildOptions): Route {
    // plain http is asked of the proxy as it is: many refuse a tunnel to port 80
    const dispatcher = this.#keep(
      new ProxyAgent({ ...NO_LIMITS, uri: proxy, requestTls: options, proxyTunnel: false }),
    );
    const shown = new URL(proxy);
    shown.username = shown.password = "";
    return { dispatcher, quiet: dispatcher, proxy: shown.origin };
  }

  #keep<D extends Dispatcher>(dispatcher: D): D {
    this.#all.add(dispatcher);
    return dispatcher;
  }
}
