import {
  InMemoryServerEventBus,
  type Server,
  type ServerEvent,
  type ServerEventBus,
} from "@modelcontextprotocol/server";
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

export function createBus(log: ServerLog): Bus {
  const events = new InMemoryServerEventBus((error) => log("warning", "telling clients of a change failed", { error }));
  const held = new Map<string, ServerEvent>();
  const publish = (key: string, event: ServerEvent): void => {
    if (held.size === 0) {
      queueMicrotask(() => {
        const due = [...held.values()];
        held.clear();
        for (const one of due) events.publish(one);
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
    follow: (server, wants) =>
      // a client that left, or whose server offers nothing of the kind, has nothing to be told
      events.subscribe((event) => void send(server, event, wants).catch(() => undefined)),
  };
}
