import type { JsonObject, Schema } from "@tenon/core";
import type { ContractKey } from "@tenon/core/contract";
import type { ToolRuntime } from "./calls.ts";

/** What a client wants of a server's context contract (extension `dev.tenon/context`). */
export interface ServerContract {
  /**
   * One or two keys, as objects or as the text that `TENON_CONTRACT_KEYS` has. With keys, a contract that is unsigned or signed by
   * nobody known is refused before anything is sent, and there is no way around it.
   */
  keys?: readonly ContractKey[] | string;
  /** Whether a server without a contract may be used: `allow` (default) or `refuse`. Not together with `keys`. */
  plain?: "allow" | "refuse";
  /** The client's own schema of the context. Fields that the server declares with another type are refused when the connection opens. */
  schema?: Schema | JsonObject;
  /**
   * Fields of the context of every request, or a function that gives them for the `runtime` of a call or a read.
   * What a request carries in `_meta` counts more.
   */
  context?:
    | Readonly<Record<string, unknown>>
    | ((runtime: ToolRuntime) => Readonly<Record<string, unknown>> | undefined);
}

/** A way of the ladder by which a contract is agreed on, from the best to the least. */
export type ContractWay = "0.4.2" | "0.4.2 without expires_at" | "0.4.1" | "plain";

/** One step of a negotiation, and how it ended. */
export interface ContractStep {
  /** What was asked for. */
  readonly step: ContractWay;
  /** `late`: no answer within its budget. `refused`: what the server answered will not do. `failed`: there was no usable answer. */
  readonly outcome: "accepted" | "late" | "refused" | "failed";
  /** Milliseconds it took; 0 where the answer to an earlier step was looked at again. */
  readonly ms: number;
  /** Why it was not accepted. */
  readonly reason?: string;
}

/** How a contract with a server was, or was not, agreed on. */
export interface ContractEvent {
  /** Configured name of the server. */
  readonly server: string;
  /** In the order they were tried. */
  readonly steps: readonly ContractStep[];
  /** Undefined when none was accepted. */
  readonly accepted?: ContractWay;
}

/** Where a server's contract and what the protocol says of it differ, by method-level names such as `tools.execute`. */
export interface ContractDrift {
  /** The server could do it; its contract does not have it, so it is not used. */
  readonly undeclared: readonly string[];
  /** Its contract has it; the server does not say that it can. */
  readonly unannounced: readonly string[];
}

/** The contract that is in force with a server. */
export interface ContractInfo {
  /** `"0.4.2"` or `"0.4.1"`. */
  readonly version: string;
  /** What the server calls itself; signed. */
  readonly serverId: string;
  /** What may be asked of it, such as `tools.execute`. */
  readonly capabilities: readonly string[];
  /** What it wants to know with every request: JSON Schema of the context. */
  readonly schema: JsonObject;
  /** True when this client's keys vouch for it; without `keys` nobody looks. */
  readonly signed: boolean;
  /** ISO 8601: when it is asked for anew. */
  readonly nextRotation?: string;
  /** Left out where both say the same. */
  readonly drift?: ContractDrift;
}

/** The last context that a server accepted in a session (`contexts/get`). */
export interface SessionContext {
  /** Its fields. */
  readonly context: JsonObject;
  /** ISO 8601: until when the server keeps it; left out where the contract knows no such time (0.4.1). */
  readonly expiresAt?: string;
}
