import type { ServerConfig, ServerInfo } from "../types/servers.ts";
import type { Connection } from "./connection.ts";
import type { Server } from "./server.ts";

/** What a request says about which replica it belongs to, and what its earlier sendings found out. */
export interface CallRoute {
  /** The conversation it is part of. */
  readonly threadId?: string | undefined;
  /** The session of the context that it asks for. */
  readonly sessionId?: string;
  /** Replicas that failed this call before: they are tried last. */
  failed?: Set<object>;
}

/** Where a call goes, or went: what one process or replica began, only that one may know. */
export interface Via {
  member?: Server;
  /** The call says when it is over: until then a replica that leaves is not closed under it. */
  readonly keeps?: true;
  /** Lets go of the replica that has the call; there once one has it. */
  release?: () => void;
}

/** One request on its way to a server. */
export interface Sent {
  readonly method: string;
  /** In words, for example `tools/call refund`. */
  readonly what: string;
  /** Wire name of the tool, where it is a call of one. */
  readonly tool?: string | undefined;
  /** Whether it only reads, or may be repeated at the place it was sent to. */
  readonly safe: boolean;
  /** Whether it may be repeated at another replica; a name for its effect (a key) counts at one place only. */
  readonly elsewhere: boolean;
  /** Whether it may be sent again; each time it says so counts. */
  readonly mayRepeat: () => boolean;
  /** Counts for the server's `concurrency`. */
  readonly inTurn: boolean;
  readonly via: Via;
  readonly route: CallRoute;
  readonly headers: Readonly<Record<string, string>>;
  readonly meta: Readonly<Record<string, unknown>>;
  /** Fields of its context that the configuration gives; what `meta` brings counts more. */
  readonly contextFields?: Readonly<Record<string, unknown>> | undefined;
  readonly signal: AbortSignal;
  /** Whether an error says that this replica lacks what others may have; it surely did not run there. */
  readonly lacks?: ((error: unknown) => boolean) | undefined;
  /** The same for an answer: many servers say it as a tool's error. */
  readonly saysLacking?: ((answer: unknown) => boolean) | undefined;
}

/** What an attempt is told of those before it. */
export interface Attempted {
  /** Milliseconds that requests to other replicas took. */
  readonly lostMs: number;
  /** Whether another replica can be tried: then a busy one is not waited for. */
  readonly others: boolean;
}

/** Sends a request on a connection. */
export type Attempt<T> = (connection: Connection, before?: Attempted) => Promise<T>;

/** A configured server as calls, the catalog and tasks see it: one place, or several replicas. */
export interface Endpoint {
  readonly name: string;
  readonly config: ServerConfig;
  readonly info: ServerInfo;
  readonly closed: boolean;
  /** The revision it speaks, once it was spoken to. */
  readonly revision: string | undefined;
  /** The id of its session on the older revision over HTTP, while there is one. */
  readonly sessionId: string | undefined;
  /** How often a request may be repeated unless a layer decides about it. */
  readonly repeats: number;
  /** Called when requests begin to be made for somebody else: nothing of the one before must be shown. */
  onIdentity: (() => void) | undefined;
  /** Whether it takes more than a glance to tell who requests are made for. */
  readonly identifies: boolean;
  /** Who requests are made for now, as a name for caches. @throws AuthError */
  identify(): Promise<string>;
  /** A connection; opens one if there is none. @throws TenonError */
  connection(): Promise<Connection>;
  /** Runs `use` on a connection for what is the same for all callers: lists. @throws TenonError */
  use<T>(what: string, use: (connection: Connection) => Promise<T>, safe?: boolean): Promise<T>;
  /** Sends a request, and again where that is safe. @throws TenonError */
  send<T>(sent: Sent, attempt: Attempt<T>): Promise<T>;
  /** Tells what is wrong with the server's lists, beside its health. */
  report(problems: ServerInfo["problems"], error?: { readonly code: string; readonly message: string }): void;
  close(): Promise<void>;
}
