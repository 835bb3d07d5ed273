export { renderText } from "./call/results.ts";
export { createClient } from "./client.ts";
export type { Mount, Sandbox } from "./connection/launch.ts";
export type { FirstStart, FirstUse, PinOptions } from "./trust/gate.ts";
export type { Grants } from "./trust/types.ts";
export type {
  CallDriver,
  CallOptions,
  Leg,
  ReadOptions,
  TaskCreated,
  ToolCallOutcome,
  ToolCallRequest,
  ToolResult,
  ToolRuntime,
  WireResult,
} from "./types/calls.ts";
export type {
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  CatalogTool,
  PromptMessage,
  ResourceBlob,
} from "./types/catalog.ts";
export type { Client, ClientOptions } from "./types/client.ts";
export type {
  ContractDrift,
  ContractEvent,
  ContractInfo,
  ContractStep,
  ContractWay,
  ServerContract,
  SessionContext,
} from "./types/contracts.ts";
export type { ClientEvents, EventSource, LogEvent, ProgressEvent } from "./types/events.ts";
export type { AnyInterceptor, Interceptor, Next, RuntimeInterceptor } from "./types/interceptors.ts";
export type {
  ElicitationAnswer,
  ElicitationHandler,
  ElicitationRequest,
  Field,
  SamplingAnswer,
  SamplingHandler,
  SamplingRequest,
} from "./types/questions.ts";
export type {
  BreakerOptions,
  BreakerRate,
  BreakerState,
  RegistryInfo,
  ReplicaConfig,
  ReplicaInfo,
  RoutedRequest,
  RoutingOptions,
} from "./types/routing.ts";
export type {
  HttpServerConfig,
  ReplicasServerConfig,
  ServerConfig,
  ServerInfo,
  ServiceServerConfig,
  StdioServerConfig,
  TransportServerConfig,
} from "./types/servers.ts";
export type {
  AnsweredCall,
  ClientTasks,
  FollowOptions,
  ResumeOptions,
  StartedTask,
  StartOptions,
  TaskHandle,
  TaskRequestOptions,
  TaskStatus,
} from "./types/tasks.ts";
