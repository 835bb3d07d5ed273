import type { Era } from "@tenon/core";
import type { ContractDrift, ContractInfo } from "./contracts.ts";

/** When a replica is left alone because it fails. */
export interface BreakerOptions {
  /** It opens with one failure more than this within `windowMs`. Default 50. */
  failures?: number;
  /** Milliseconds over which failures are counted. Default 60,000. */
  windowMs?: number;
  /** Milliseconds it stays open; then one call is let through, and shows whether it closes. Default 300,000. */
  openMs?: number;
  /** A second rule, off by default: it opens also when this share of the requests within `windowMs` failed. */
  rate?: BreakerRate;
}

/** A share of failures that opens a breaker. */
export interface BreakerRate {
  /** Above which share, between 0 and 1. */
  threshold: number;
  /** Requests within the window below which the share says nothing. Default 20. */
  minimumCalls?: number;
}

/** A request that looks for its replica. */
export interface RoutedRequest {
  /** Configured name of the server. */
  readonly server: string;
  /** In words, for example `tools/call search`. */
  readonly what: string;
  /** The conversation: `runtime.threadId` of the call. */
  readonly threadId?: string;
  /** The context that the request carries for its server's contract. */
  readonly context?: Readonly<Record<string, unknown>>;
}

/** How requests find a replica, for all servers of a client that have replicas. */
export interface RoutingOptions {
  /** When a replica is left alone; `false`: never. Given here, a server of a single `url` has a breaker too. */
  breaker?: BreakerOptions | false;
  /** Connects to all replicas as soon as there is a client. Default: for servers of a registry. */
  prewarm?: boolean;
  /**
   * What keeps requests together: those with the same key go to the same replica while it is there. Undefined, and by default:
   * the thread id, else `session_id` of the contract's context, else who requests are made for, else this client.
   */
  key?: (request: RoutedRequest) => string | undefined;
}

/** One replica of a server, as a configuration or a registry names it. */
export interface ReplicaConfig {
  /** Full address of its endpoint. */
  url: string;
  /** Names it, and decides which keys it gets: give one to a replica whose address changes. Default: its address. */
  id?: string;
  /** What it can do, in words of the context contract such as `"tools.execute"`. Left out: its connection tells. */
  capabilities?: readonly string[];
}

/** What a breaker does with requests: lets them through, lets one through, lets none through. */
export type BreakerState = "closed" | "half-open" | "open";

/** State of one replica. */
export interface ReplicaInfo {
  /** Its name, as given, or its address. */
  readonly id: string;
  /** Its address, without what may be a credential. */
  readonly url: string;
  /** `idle` until first use; `down` carries the reason in `error`. */
  readonly health: "idle" | "connecting" | "up" | "down";
  /** Whether it is left alone because it fails. */
  readonly breaker?: BreakerState;
  /** When an open breaker lets a call through again, ISO 8601. */
  readonly retryAt?: string;
  /** True for one that is out of the configuration or the registry, and only ends what it has begun. */
  readonly leaving?: true;
  /** What it can do: as its configuration or its registry says, else its contract, else what it announces. */
  readonly capabilities?: readonly string[];
  /** The contract that is in force with it. */
  readonly contract?: ContractInfo;
  /** Where what was declared of it and what it announces differ. */
  readonly drift?: ContractDrift;
  /** The revision spoken: `modern` is 2026-07-28, `legacy` is 2025-11-25 and older. */
  readonly era?: Era;
  /** The exact revision. */
  readonly revision?: string;
  /** Self-reported: for display only. */
  readonly implementation?: { readonly name: string; readonly version: string };
  /** Why it is down. */
  readonly error?: { readonly code: string; readonly message: string };
  /** Requests in flight. */
  readonly requests: number;
}

/** What is known of the registry that names a server's replicas. */
export interface RegistryInfo {
  /** `down`: the replicas are those of its last good answer. */
  readonly health: "waiting" | "up" | "down";
  /** Why it did not answer, or what is wrong with its answer. */
  readonly error?: { readonly code: string; readonly message: string };
  /** What it named and is not used, each with the reason. */
  readonly refused?: ReadonlyArray<{ readonly replica: string; readonly reason: string }>;
}
