import type { LoggingLevel } from "@modelcontextprotocol/client";
import { callable, type OptionChecks } from "@tenon/core/internal";
import type { ElicitationRequest } from "./questions.ts";
import type { ServerInfo } from "./servers.ts";

/** Which call an event belongs to. */
export interface EventSource {
  readonly server: string;
  /** The tool's wire name; absent when the server sent the event outside a call. */
  readonly tool?: string;
  /** The prompt's name, or the resource's address, where one of those was asked for. */
  readonly prompt?: string;
  readonly uri?: string;
  /** Unique per call of this client; absent outside a call. */
  readonly callId?: string;
}

export interface ProgressEvent {
  readonly progress: number;
  readonly total?: number;
  readonly message?: string;
  /** 0 to 100 with one decimal, where a total is known. */
  readonly percent?: number;
}

export interface LogEvent {
  readonly level: LoggingLevel;
  readonly logger?: string;
  readonly data: unknown;
}

export interface ClientEvents {
  onProgress?: (event: ProgressEvent, source: EventSource) => void;
  onLog?: (event: LogEvent, source: EventSource) => void;
  /** A server says that its tools changed; the next `listTools()` asks it anew. */
  onCatalogChanged?: (event: { readonly server: string }) => void;
  /** A server asks the person something. Only told: the `elicitation` handler, or the call's driver, answers. */
  onElicitation?: (request: ElicitationRequest, source: EventSource) => void;
  /** A server's connection changed. */
  onServerState?: (info: ServerInfo) => void;
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
  onHandlerError: callable,
};
