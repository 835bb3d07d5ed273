import type { LoggingLevel } from "@modelcontextprotocol/client";
import type { TelemetryOptions } from "@tenon/core";
import type { Registry } from "../registry/types.ts";
import type { OnFirstStart, PinOptions } from "../trust/gate.ts";
import type { CallOptions, ReadOptions, ToolCallOutcome, ToolRuntime } from "./calls.ts";
import type {
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  Naming,
  PromptMessage,
  ResourceBlob,
} from "./catalog.ts";
import type { SessionContext } from "./contracts.ts";
import type { ClientEvents } from "./events.ts";
import type { Interceptor } from "./interceptors.ts";
import type { ApprovedSampling, ElicitationHandler, Roots, SamplingHandler } from "./questions.ts";
import type { RoutingOptions } from "./routing.ts";
import type { ServerConfig, ServerInfo } from "./servers.ts";
import type { ClientTasks, FollowOptions } from "./tasks.ts";

/** Which servers there are, and everything that is not the default. */
export interface ClientOptions<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  /** The servers by the name this program has for each. */
  servers: Record<string, ServerConfig>;
  /** Layers around every call, the outermost first. */
  interceptors?: ReadonlyArray<Interceptor<Runtime, Extra>>;
  /** Who hears of progress, log messages and changes. */
  events?: ClientEvents;
  /**
   * Answers servers' questions: a handler, or `"interrupt"` when every call brings a driver (the agent does). Left out, the
   * elicitation capability is not declared.
   */
  elicitation?: ElicitationHandler | "interrupt";
  /**
   * Answers servers that want a model. Left out, the capability is not declared.
   * @deprecated by the protocol; earliest removal 2027-07-28.
   */
  sampling?: SamplingHandler | ApprovedSampling;
  /**
   * Answers servers that ask where they may work. Left out, the capability is not declared.
   * @deprecated by the protocol; earliest removal 2027-07-28.
   */
  roots?: Roots;
  /** Default `"prefixed"`. */
  naming?: Naming;
  /** `return` (default): a tool's error is a result with `isError`; `throw`: it is an `ExecutionError`. */
  toolErrors?: "return" | "throw";
  /** Least severe level asked of servers while `events.onLog` or a call's `onLog` listens. Default `"info"`. */
  logLevel?: LoggingLevel;
  /** Bytes the answer of a call, a prompt or a resource may have; a larger one fails its own call. Default 8 MiB. */
  maxResultBytes?: number;
  /** How requests find a replica of a server that has several, and when one is left alone. */
  routing?: RoutingOptions;
  /** Says where servers with a `service` are. Whoever made it closes it; this client only stops to watch. */
  registry?: Registry;
  /** What traces may tell of calls. Default: names, times and how they ended. */
  telemetry?: TelemetryOptions;
  /** How tasks are followed unless a call says otherwise (`task` of a call). */
  task?: FollowOptions;
  /**
   * The file that records every tool as it was accepted. A tool that differs later is not listed and not called
   * (`tool_changed`) until it is accepted again. Left out, tools may change as they like.
   */
  pin?: string | PinOptions;
  /** Asked with the exact command before a child process is started that nobody accepted; `false` forbids it. */
  onFirstStart?: OnFirstStart;
  /** How this client introduces itself. Default: name `tenon`, this package's version. */
  info?: {
    /** Name of the program. */
    name: string;
    /** Its version. */
    version: string;
  };
}

/** A client of many servers: made by `createClient`, closed by whoever made it. */
export interface Client<Runtime extends ToolRuntime = ToolRuntime, Extra = never> {
  /** Who answers servers' questions: the `elicitation` handler, each call's driver, or nobody. */
  readonly elicitation: "callback" | "interrupt" | "none";
  /** The merged catalog: servers in configured order, tools by name. Opens connections as needed, all at once. */
  listTools(...servers: string[]): Promise<readonly CatalogTool[]>;
  /** The prompts of all servers, or of these. */
  listPrompts(...servers: string[]): Promise<readonly CatalogPrompt[]>;
  /** The resources of all servers, or of these. */
  listResources(...servers: string[]): Promise<readonly CatalogResource[]>;
  /** The families of resources of all servers, or of these. */
  listResourceTemplates(...servers: string[]): Promise<readonly CatalogResourceTemplate[]>;
  /** Calls a tool by its server and wire name, through the interceptors. A call that becomes a task is followed to its end. */
  callTool(
    server: string,
    tool: string,
    args?: Record<string, unknown>,
    options?: CallOptions<Runtime>,
  ): Promise<ToolCallOutcome<Extra>>;
  /** Calls a tool by its model-side name. */
  dispatch(
    name: string,
    args?: Record<string, unknown>,
    options?: CallOptions<Runtime>,
  ): Promise<ToolCallOutcome<Extra>>;
  /** Long work by its id: started here, followed here or elsewhere. */
  readonly tasks: ClientTasks<Runtime, Extra>;
  /** Reads the given resources, or all listed ones when `uris` is left out. */
  readResources(
    server: string,
    uris?: readonly string[],
    options?: ReadOptions<Runtime>,
  ): Promise<readonly ResourceBlob[]>;
  /** The messages of a prompt. */
  getPrompt(
    server: string,
    name: string,
    args?: Record<string, string>,
    options?: ReadOptions<Runtime>,
  ): Promise<readonly PromptMessage[]>;
  /**
   * The last context that a server accepted in a session (`contexts/get`), where its contract declares `contexts.get`.
   * @throws ContractError `undeclared_capability`, `no_contract`; ProtocolError `rpc_error` for a session it does not know
   */
  getContext(server: string, sessionId: string, options?: ReadOptions<Runtime>): Promise<SessionContext>;
  /** What is known of each server: whether it is up, its revision, what is wrong with it. Connects to none. */
  servers(): readonly ServerInfo[];
  /** Ends all connections and child processes, within seconds. What runs fails with `closed`. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
