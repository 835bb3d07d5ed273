import type { Transport } from "@modelcontextprotocol/client";
import type { Era } from "@tenon/core";
import type { Auth } from "../auth/types.ts";
import type { ToolSelection } from "../catalog/filters.ts";
import type { Sandbox } from "../connection/launch.ts";
import type { ServerTrust } from "../trust/types.ts";
import type { ContractInfo, ServerContract } from "./contracts.ts";
import type { BreakerOptions, BreakerState, RegistryInfo, ReplicaConfig, ReplicaInfo } from "./routing.ts";

/** A server reached over Streamable HTTP. */
export interface HttpServerConfig extends ToolSelection, ServerTrust {
  /** Full address of the endpoint, for example `http://127.0.0.1:8030/mcp`. */
  url: string;
  /** Sent with every request to this server and to no other. */
  headers?: Record<string, string>;
  /**
   * Who requests are made for: `bearer`, `oauth`, `clientCredentials` and others of `@tenon/client/auth`. The token goes to this
   * server's own origin and nowhere else. Needs https, except on this machine. Not together with an `Authorization` header.
   */
  auth?: Auth;
  /** When true, `listTools()` fails if this server cannot be reached. Default false: it is reported by `servers()`. */
  required?: boolean;
  /** Milliseconds until a connection attempt counts as failed. Default 5,000. */
  connectTimeoutMs?: number;
  /** What is wanted of the server's context contract. Left out, a contract that it announces is kept, unsigned or not. */
  contract?: ServerContract;
  /** Path of a unix socket to connect to; the address then only says host name and path. */
  socketPath?: string;
  /** Certificates as PEM text, not the path of a file, trusted instead of the system's. Verification cannot be switched off. */
  ca?: string | string[];
  /** Bytes that one message of this server may have; a larger one fails its call. Default 16 MiB. */
  maxResponseBytes?: number;
  /** When it is left alone because it fails. A server of one address has a breaker only when this, or `routing.breaker`, is given. */
  breaker?: BreakerOptions | false;
}

/** A server that runs several times. Its replicas are one server: trusted, signed in to and shown as one. */
export interface ReplicasServerConfig extends Omit<HttpServerConfig, "url" | "socketPath"> {
  /** Their addresses; a replica may have a name and say what it can do. */
  replicas: readonly (string | ReplicaConfig)[];
  /** The address that tokens are made for (RFC 8707): every replica must take them. Default: the address of the first one. */
  resource?: string;
}

/** A server whose replicas a registry names; needs `registry` of `createClient`. */
export interface ServiceServerConfig extends Omit<HttpServerConfig, "url" | "socketPath"> {
  /** Its name in the registry. */
  service: string;
  /**
   * Where its replicas may be, such as `"https://kb.example"` or `"http://*.kb.internal:*"`; what the registry names beside that is
   * not used. Needed with `auth` or `headers`, and for calls with headers of their own: a registry must not decide who gets them.
   */
  origins?: readonly string[];
  /** The address that tokens are made for (RFC 8707). Needed with an `auth` other than `bearer`. */
  resource?: string;
}

/** A server started as a child process that speaks over its standard input and output. */
export interface StdioServerConfig extends ToolSelection, ServerTrust {
  /** The program: a name or a path, never a shell line. */
  command: string;
  /** Its arguments, one by one. Default: none. */
  args?: string[];
  /** Added to a small safe base environment (PATH, HOME, locale); nothing else of this process is passed on. */
  env?: Record<string, string>;
  /** The folder it runs in. Default: this process's. */
  cwd?: string;
  /** Starts it with less power: as another user, or in a container without network. */
  sandbox?: Sandbox;
  /** When true, `listTools()` fails if this server cannot be reached. Default false: it is reported by `servers()`. */
  required?: boolean;
  /** Milliseconds until a connection attempt counts as failed. Default 5,000. */
  connectTimeoutMs?: number;
  /** What is wanted of the server's context contract. Left out, a contract that it announces is kept, unsigned or not. */
  contract?: ServerContract;
  /** Bytes that one message of this server may have; a larger one fails its call. Default 16 MiB. */
  maxResponseBytes?: number;
  /**
   * Tool calls in flight at once; more wait for their turn. Default: no limit. With 1, every log message of a server of
   * the older revision is known to belong to the one call that runs.
   */
  concurrency?: number;
  /**
   * Processes at most, each with one tool call at a time: calls run side by side and every log message still belongs to one.
   * Further processes start when calls overlap, and share no state with the first. Default 1. Not together with `concurrency`.
   */
  pool?: number;
}

/** A server behind any transport of the SDK; the function is called once per connection. */
export interface TransportServerConfig extends ToolSelection, ServerTrust {
  /** Makes the transport of one connection. */
  transport: () => Transport;
  /** When true, `listTools()` fails if this server cannot be reached. Default false: it is reported by `servers()`. */
  required?: boolean;
  /** Milliseconds until a connection attempt counts as failed. Default 5,000. */
  connectTimeoutMs?: number;
  /** What is wanted of the server's context contract. Left out, a contract that it announces is kept, unsigned or not. */
  contract?: ServerContract;
}

/** One place where a server is reached: by `url`, by `command`, or by a `transport` of your own. */
export type EndpointConfig = HttpServerConfig | StdioServerConfig | TransportServerConfig;

/** How a server is reached: at one place, at several `replicas`, or where a registry says that its `service` is. */
export type ServerConfig = EndpointConfig | ReplicasServerConfig | ServiceServerConfig;

/** State of one configured server. */
export interface ServerInfo {
  /** Configured name. */
  readonly server: string;
  /** `idle` until first use; `down` carries the reason in `error`. */
  readonly health: "idle" | "connecting" | "up" | "down";
  /** The revision spoken: `modern` is 2026-07-28, `legacy` is 2025-11-25 and older. */
  readonly era?: Era;
  /** The exact revision, for example `"2025-11-25"`. */
  readonly revision?: string;
  /** Self-reported by the server: for display only. */
  readonly implementation?: { readonly name: string; readonly version: string };
  /** What the server tells models about its tools: its word, not yours. */
  readonly instructions?: string;
  /** What it can be asked, such as `tools.execute`: by its contract where one is in force, else by what it announces. */
  readonly capabilities?: readonly string[];
  /** The context contract that is in force. */
  readonly contract?: ContractInfo;
  /** Why it is down. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Where it has breakers: `closed` while one of its replicas is, `open` when nothing is let through to any. */
  readonly breaker?: BreakerState;
  /** Its replicas, where it has several or a breaker. */
  readonly replicas?: readonly ReplicaInfo[];
  /** The registry that names them, where one does. */
  readonly registry?: RegistryInfo;
  /** Tools that were left out or are used with a reservation (a schema that cannot be checked), each with the reason; also lists of prompts or resources that failed, by their method. */
  readonly problems: ReadonlyArray<{ readonly tool: string; readonly reason: string }>;
}
