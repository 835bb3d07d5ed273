import { randomUUID } from "node:crypto";
import {
  InMemoryServerEventBus,
  type Server,
  type ServerEvent,
  type ServerEventBus,
} from "@modelcontextprotocol/server";
import { isRecord, type Json } from "@tenon/core";
import { digest } from "@tenon/core/internal";
import type { EventBus } from "@tenon/store";
import type { ServerLog } from "../log.ts";

/** Tells clients that asked for it that something changed. Calls of one turn are sent once. */
export interface Notifier {
  /** The list of tools is another one. */
  toolsChanged(): void;
  /** The list of prompts is another one. */
  promptsChanged(): void;
  /** The list of resources is another one. */
  resourcesChanged(): void;
  /** What a resource holds is new. @param uri the resource, as clients subscribed to it */
  resourceUpdated(uri: string): void;
}

/** The one bus of a server: subscriptions of 2026-07-28, sessions of 2025-11-25 and stdio all listen to it. */
export interface Bus {
  readonly events: ServerEventBus;
  readonly notify: Notifier;
  /** Listens to what other processes of this server tell, from now on; calling it again changes nothing. */
  hear(): void;
  /** Stops listening to other processes. */
  close(): void;
  /**
   * Sends the bus's events through a protocol instance that outlives its requests.
   * @param wants whether its client asked for updates of this resource
   * @returns ends it
   */
  follow(server: Server, wants: (uri: string) => boolean): () => void;
}

async function send(server: Server, event: ServerEvent, wants: (uri: string) => boolean): Promise<void> {
  switch (event.kind) {
    case "tools_list_changed":
      return server.sendToolListChanged();
    case "prompts_list_changed":
      return server.sendPromptListChanged();
    case "resources_list_changed":
      return server.sendResourceListChanged();
    case "resource_updated":
      return wants(event.uri) ? server.sendResourceUpdated({ uri: event.uri }) : undefined;
  }
}

/** What a change looks like between processes. */
interface Told {
  /** Which bus tells it: nobody listens to itself. */
  readonly from: string;
  readonly event: ServerEvent;
}

const LISTS: readonly ServerEvent[] = [
  { kind: "tools_list_changed" },
  { kind: "prompts_list_changed" },
  { kind: "resources_list_changed" },
];

/** An event another process told; undefined when it is none that this version knows. */
function readTold(message: Json): Told | undefined {
  const { from, event } = isRecord(message) ? message : {};
  if (typeof from !== "string" || !isRecord(event)) return undefined;
  if (event.kind === "resource_updated" && typeof event.uri === "string") {
    return { from, event: { kind: "resource_updated", uri: event.uri } };
  }
  const list = LISTS.find(({ kind }) => kind === event.kind);
  return list && { from, event: list };
}

/**
 * @param others where processes of the same server tell each other of changes; undefined where there are none
 */
export function createBus(log: ServerLog, others?: { readonly bus: EventBus; readonly server: string }): Bus {
  const me = randomUUID();
  const topic = others && `server:${digest(others.server)}`;
  let deaf: (() => void) | undefined;
  let closed = false;
  const tell = (event: ServerEvent): void => {
    if (!others || topic === undefined) return;
    others.bus
      .publish(topic, { from: me, event: event as unknown as Json }) // texts alone
      .catch((error: unknown) => log("warning", "telling other processes of a change failed", { error }));
  };
  const events = new InMemoryServerEventBus((error) => log("warning", "telling clients of a change failed", { error }));
  const held = new Map<string, ServerEvent>();
  const publish = (key: string, event: ServerEvent): void => {
    if (held.size === 0) {
      queueMicrotask(() => {
        const due = [...held.values()];
        held.clear();
        for (const one of due) {
          events.publish(one);
          tell(one);
        }
      });
    }
    held.set(key, event);
  };
  return {
    events,
    notify: {
      toolsChanged: () => publish("tools", { kind: "tools_list_changed" }),
      promptsChanged: () => publish("prompts", { kind: "prompts_list_changed" }),
      resourcesChanged: () => publish("resources", { kind: "resources_list_changed" }),
      resourceUpdated: (uri) => publish(`resource ${uri}`, { kind: "resource_updated", uri }),
    },
    hear() {
      if (!others || topic === undefined || closed) return;
      deaf ??= others.bus.subscribe(
        topic,
        (message) => {
          const told = readTold(message);
          if (told && told.from !== me) events.publish(told.event);
        },
        {
          onGap() {
            for (const event of LISTS) events.publish(event); // any of them may have changed meanwhile
          },
        },
      );
    },
    close() {
      closed = true;
      deaf?.();
    },
    follow: (server, wants) =>
      // a client that left, or whose server offers nothing of the kind, has nothing to be told
      events.subscribe((event) => void send(server, event, wants).catch(() => undefined)),
  };
}
