import type { ClientEvents, EventSource, LogEvent } from "@tenon/client";
import { LOG_LEVELS } from "@tenon/core/internal";
import type { CallbackContext, Connection, MultiServerConfig, ServerSource } from "./types.ts";

type Level = LogEvent["level"];

/** Which log messages are wanted, of all servers or of one. */
export interface LogLevels {
  /** The least severe level any server is asked for. */
  readonly asked: Level;
  wants(server: string, level: Level): boolean;
  set(level: Level, server?: string): void;
}

export function isLevel(value: unknown): value is Level {
  return LOG_LEVELS.some((level) => level === value);
}

/** @param listening false when nobody reads log messages: servers are asked for as few as there can be */
export function logLevels(initial: Level, listening: boolean): LogLevels {
  let general = initial;
  const own = new Map<string, Level>();
  const rank = (level: Level) => LOG_LEVELS.indexOf(level);
  return {
    get asked() {
      if (!listening) return "emergency";
      return [general, ...own.values()].reduce((least, level) => (rank(level) < rank(least) ? level : least));
    },
    wants: (server, level) => rank(level) >= rank(own.get(server) ?? general),
    set(level, server) {
      if (server !== undefined) own.set(server, level);
      else {
        general = level;
        own.clear();
      }
    },
  };
}

function contextOf({ server, tool }: EventSource): CallbackContext {
  return { serverName: server, ...(tool !== undefined && { toolName: tool }) };
}

/** Arguments of calls that run, for whoever is told of their progress. */
export type ArgumentsOf = (callId: string | undefined) => unknown;

/** The client's events as the callbacks people have. */
export function eventsFor(config: MultiServerConfig, levels: LogLevels, argumentsOf: ArgumentsOf): ClientEvents {
  const { onMessage, onProgress, onInitialized, onToolsListChanged, callbacks = {} } = config;
  const options = (server: string): Connection | undefined => config.mcpServers[server];
  const sourceOf = (server: string): ServerSource => ({ server, options: options(server) as Connection }); // a configured one
  const silent = (server: string) => {
    const connection = options(server);
    return connection !== undefined && "stderr" in connection && connection.stderr === "ignore";
  };
  const anySilent = Object.keys(config.mcpServers).some(silent);
  const events: ClientEvents = {};
  if (onMessage || callbacks.onLoggingMessage || anySilent) {
    const listening = Boolean(onMessage || callbacks.onLoggingMessage);
    events.onLog = (event, source) => {
      const ofChild = event.logger === "stderr" && source.callId === undefined;
      if (ofChild && silent(source.server)) return;
      if (!listening) {
        if (ofChild) process.stderr.write(`${String(event.data)}\n`);
        return;
      }
      if (!levels.wants(source.server, event.level)) return;
      onMessage?.(event, sourceOf(source.server));
      callbacks.onLoggingMessage?.(event, contextOf(source));
    };
  }
  if (onProgress || callbacks.onProgress) {
    events.onProgress = ({ percent, ...event }, source) => {
      const { server, tool, callId } = source;
      const update = { ...event, ...(percent !== undefined && { percentage: percent }) };
      const origin =
        tool === undefined
          ? ({ type: "unknown" } as const)
          : ({ type: "tool", server, name: tool, args: argumentsOf(callId) } as const);
      onProgress?.(update, origin);
      callbacks.onProgress?.(event.progress, event.total, event.message, contextOf(source));
    };
  }
  if (onInitialized) {
    const up = new Set<string>();
    events.onServerState = ({ server, health }) => {
      if (health === "up" && !up.has(server)) onInitialized(sourceOf(server));
      if (health === "up") up.add(server);
      else up.delete(server);
    };
  }
  if (onToolsListChanged) {
    events.onCatalogChanged = ({ server }) => {
      const source = sourceOf(server);
      // handlers are written in two ways: (source) and (event, source)
      onToolsListChanged(source, source);
    };
  }
  return events;
}
