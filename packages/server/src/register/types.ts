import type { ServerLog } from "../log.ts";

/** A server that listens, as a registry is told of it. */
export interface RegisteredServer {
  /** The server's `name` and `version`. */
  readonly name: string;
  readonly version: string;
  /** Where it listens: scheme, host as it was bound, port and path of the endpoint. */
  readonly scheme: "http" | "https";
  readonly host: string;
  readonly port: number;
  readonly path: string;
  /** What it can do now, in words of the context contract such as `"tools.execute"`; asked now and then. */
  capabilities(): readonly string[];
  /** Whether it has a contract, whose handshake stands below the endpoint. */
  readonly hasContract: boolean;
  readonly log: ServerLog;
}

/** One server in one registry, until it is closed. */
export interface Registration {
  /** Takes it out of the registry; waits a second at most. */
  close(): Promise<void>;
}

/** Tells a registry of servers. Made by a function of `@tenon/server/register`, or by a program of its own. */
export interface Registrar {
  /**
   * Called once a server listens. What fails is written to the server's log and tried again: a server serves without its registry.
   * @throws ConfigError for a server that cannot be registered
   */
  register(server: RegisteredServer): Registration;
}
