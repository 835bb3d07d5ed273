import {
  CLIENT_CAPABILITIES_META_KEY,
  isJSONRPCNotification,
  isJSONRPCRequest,
  type JSONRPCMessage,
  PROTOCOL_VERSION_META_KEY,
  type RequestId,
  SUBSCRIPTION_ID_META_KEY,
} from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { MODERN_REVISION } from "@tenon/core/internal";
import type { Service } from "../dispatch/dispatch.ts";
import { taskNotification, withTaskIds } from "../http/task-stream.ts";
import { type TaskFeed, taskIdsOf } from "../task/feed.ts";
import { declaresTasks, missingTasks } from "../task/wire.ts";

/** The protocol layer knows no tasks: adds them to the subscriptions of one connection. */
export interface TaskListens {
  /** @returns whether the message was taken: it is refused, dropped or passed on later */
  take(message: JSONRPCMessage): boolean;
  /** The message as it goes out. */
  outgoing(message: JSONRPCMessage): JSONRPCMessage;
  /** Ends all. */
  close(): void;
}

/** Tasks one client on stdio may be told of at once. */
const MAX_SUBSCRIPTIONS = 64;
const INTERNAL = -32_603;

/** @param wire.send writes a message; `pass` hands one to the protocol layer */
export function createTaskListens(
  { tasks, log }: Pick<Service, "tasks" | "log">,
  wire: { send(message: JSONRPCMessage): void; pass(message: JSONRPCMessage): void },
): TaskListens {
  const opening = new Set<RequestId>();
  const open = new Map<RequestId, { readonly feed: TaskFeed; stop?: () => void }>();

  function refuse(id: RequestId, error: { code: number; message: string; data?: unknown }): void {
    wire.send({ jsonrpc: "2.0", id, error });
  }
  function end(id: RequestId): void {
    open.get(id)?.stop?.();
    open.delete(id);
  }
  async function listen(id: RequestId, ids: readonly string[], message: JSONRPCMessage): Promise<void> {
    opening.add(id);
    try {
      const feed = await tasks.feed(ids, undefined);
      if (!opening.has(id)) return; // taken back meanwhile
      open.set(id, { feed });
      wire.pass(message);
    } catch (error) {
      log("error", "subscriptions/listen failed", { error });
      refuse(id, { code: INTERNAL, message: "Internal error" });
    } finally {
      opening.delete(id);
    }
  }

  return {
    take(message) {
      if (isJSONRPCNotification(message) && message.method === "notifications/cancelled") {
        const id = message.params?.requestId;
        if (typeof id !== "string" && typeof id !== "number") return false;
        end(id);
        return opening.delete(id);
      }
      if (!isJSONRPCRequest(message) || message.method !== "subscriptions/listen" || !tasks.offered()) return false;
      const ids = taskIdsOf(message);
      const meta = isRecord(message.params?._meta) ? message.params._meta : {};
      if (!ids || meta[PROTOCOL_VERSION_META_KEY] !== MODERN_REVISION) return false;
      const { id } = message;
      const capabilities = meta[CLIENT_CAPABILITIES_META_KEY];
      if (!isRecord(capabilities)) return false; // the protocol layer says what is wrong with it
      if (!declaresTasks({ capabilities })) {
        const { code, message: words, data } = missingTasks("News of tasks");
        refuse(id, { code, message: words, data });
      } else if (open.size + opening.size >= MAX_SUBSCRIPTIONS) {
        refuse(id, { code: INTERNAL, message: "Subscription limit reached" });
      } else if (open.has(id) || opening.has(id)) {
        refuse(id, { code: -32_600, message: "The id is in use" });
      } else void listen(id, ids, message);
      return true;
    },
    outgoing(message) {
      if (!("method" in message)) {
        if (message.id !== undefined) end(message.id); // refused, or over
        return message;
      }
      if (message.method !== "notifications/subscriptions/acknowledged") return message;
      const meta = isRecord(message.params?._meta) ? message.params._meta : {};
      const id = meta[SUBSCRIPTION_ID_META_KEY] as RequestId; // the protocol layer took it from the request
      const entry = open.get(id);
      if (!entry || entry.stop) return message;
      // what it tells comes after the acknowledgement
      entry.stop = () => undefined;
      setImmediate(() => {
        if (open.get(id) === entry) {
          entry.stop = entry.feed.start((task) => {
            wire.send(taskNotification(task, id));
            return true;
          });
        }
      });
      return { ...message, params: withTaskIds(message.params, entry.feed.ids) };
    },
    close() {
      opening.clear();
      for (const id of [...open.keys()]) end(id);
    },
  };
}
