import type { LoggingLevel } from "@modelcontextprotocol/client";
import { callable, type OptionChecks } from "@tenon/core/internal";
import type { ContractEvent } from "./contracts.ts";
import type { ElicitationRequest } from "./questions.ts";
import type { ServerInfo } from "./servers.ts";

/** Which call an event belongs to. */
export interface EventSource {
  /** Configured name of the server. */
  readonly server: string;
  /** The tool's wire name; absent when the server sent the event outside a call. */
  readonly tool?: string;
  /** The prompt's name, or the resource's address, where one of those was asked for. */
  readonly prompt?: string;
  readonly uri?: string;
  /** Unique per call of this client; absent outside a call. */
  readonly callId?: string;
  /** The task that the server made of the call; absent until then. */
  readonly taskId?: string;
}

/** How far a call is. */
export interface ProgressEvent {
  /** So far, in the server's own unit; where a task only says what it is doing, how often it said something else. */
  readonly progress: number;
  /** In the same unit, where it is known. */
  readonly total?: number;
  /** What is being done. */
  readonly message?: string;
  /** 0 to 100 with one decimal, where a total is known. */
  readonly percent?: number;
}

/** A log message of a server. */
export interface LogEvent {
  /** How severe it is. */
  readonly level: LoggingLevel;
  /** Which part of the server says it. */
  readonly logger?: string;
  /** A text, or any JSON. */
  readonly data: unknown;
}

/** What a program may listen to. A listener that throws never breaks a call. */
export interface ClientEvents {
  /** A call is further than it was. */
  onProgress?: (event: ProgressEvent, source: EventSource) => void;
  /** A server says something at `logLevel` or above. */
  onLog?: (event: LogEvent, source: EventSource) => void;
  /** A server says that its tools changed; the next `listTools()` asks it anew. */
  onCatalogChanged?: (event: { readonly server: string }) => void;
  /** A server asks the person something. Only told: the `elicitation` handler, or the call's driver, answers. */
  onElicitation?: (request: ElicitationRequest, source: EventSource) => void;
  /** A server's connection changed. Default: a line on stderr when a list has to do without a server. */
  onServerState?: (info: ServerInfo) => void;
  /** A context contract was, or was not, agreed on with a server: each step, and what came of it. */
  onContract?: (event: ContractEvent) => void;
  /** An event handler threw; the call goes on. Default: a line on stderr. */
  onHandlerError?: (error: unknown) => void;
}

/** The events there are, for what takes handlers by their names. */
export const EVENTS: OptionChecks<ClientEvents> = {
  onProgress: callable,
  onLog: callable,
  onCatalogChanged: callable,
  onElicitation: callable,
  onServerState: callable,
  onContract: callable,
  onHandlerError: callable,
};
