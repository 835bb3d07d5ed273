import { SUBSCRIPTION_ID_META_KEY } from "@modelcontextprotocol/server";
import { isRecord, type JsonObject } from "@tenon/core";
import type { TaskFeed } from "../task/feed.ts";

/** Comment lines keep proxies from cutting a stream that is silent for long. */
const KEEP_ALIVE_MS = 15_000;
/** Bytes that may wait for a slow reader before news of tasks waits too: what it reads next is the whole task as it is then. */
const MAX_WAITING_BYTES = 1024 * 1024;

/** The protocol layer knows no tasks: adds them to its streams of `subscriptions/listen`. */
export interface TaskStreams {
  /** How many tell of tasks alone, or may: the protocol layer does not count these. */
  readonly alone: number;
  /**
   * @param response the protocol layer's stream for the same request
   * @param id the request's, which names the subscription
   */
  add(response: Response, feed: TaskFeed, id: string | number): Response;
  /** Ends those that tell of tasks alone, as the protocol layer ends the others. */
  close(): void;
}

const eventOf = (message: object): string => `event: message\ndata: ${JSON.stringify(message)}\n\n`;

/** The message of one event; undefined for a comment. */
function messageOf(event: string): Record<string, unknown> | undefined {
  const data = event.split("\n").find((line) => line.startsWith("data: "));
  const parsed: unknown = data === undefined ? undefined : JSON.parse(data.slice(6)); // the protocol layer wrote it
  return isRecord(parsed) ? parsed : undefined;
}

/** A notification of one subscription about one task. */
export function taskNotification(task: JsonObject, subscription: string | number) {
  const meta = isRecord(task._meta) ? task._meta : {};
  const params = { ...task, _meta: { ...meta, [SUBSCRIPTION_ID_META_KEY]: subscription } };
  return { jsonrpc: "2.0" as const, method: "notifications/tasks", params };
}

/** An acknowledgement that names the tasks too. @param params of the protocol layer's own */
export function withTaskIds(params: unknown, ids: readonly string[]): Record<string, unknown> {
  const given = isRecord(params) ? params : {};
  const notifications = isRecord(given.notifications) ? given.notifications : {};
  return { ...given, notifications: { ...notifications, ...(ids.length > 0 && { taskIds: [...ids] }) } };
}

export function createTaskStreams(): TaskStreams {
  const alone = new Set<() => void>();
  /** Streams whose acknowledgement did not come yet. */
  let opening = 0;

  function add(response: Response, feed: TaskFeed, id: string | number): Response {
    const reader = response.body?.getReader();
    if (!reader) return response;
    opening += 1;
    let known = (): void => {
      opening -= 1;
      known = () => undefined;
    };
    const decoder = new TextDecoder();
    const encoder = new TextEncoder();
    let buffered = "";
    let stop: () => void = () => undefined;
    let keepAlive: NodeJS.Timeout | undefined;
    let over = false;
    let tasksAlone = false;
    let last = "";
    let tidyUp: () => void = () => undefined;

    const body = new ReadableStream<Uint8Array>(
      {
        start(controller) {
          const write = (text: string): void => {
            if (!over) controller.enqueue(encoder.encode(text));
          };
          const end = (): void => {
            if (over) return;
            write(last);
            over = true;
            tidy();
            controller.close();
          };
          /** @returns whether the stream is over */
          const take = (event: string): boolean => {
            const message = messageOf(event);
            if (message?.method === "notifications/subscriptions/acknowledged") {
              const params = withTaskIds(message.params, feed.ids);
              tasksAlone = feed.ids.length > 0 && Object.keys(params.notifications as object).length === 1; // made a record above
              if (!tasksAlone) known();
              write(eventOf({ ...message, params }));
              stop = feed.start((task) => {
                if ((controller.desiredSize ?? 0) <= 0) return false;
                write(eventOf(taskNotification(task, id)));
                return true;
              });
              return false;
            }
            if (message?.id !== id) {
              write(`${event}\n\n`);
              return false;
            }
            last = `${event}\n\n`;
            return true;
          };
          const pump = async (): Promise<void> => {
            for (;;) {
              const { done, value } = await reader.read();
              if (over) return;
              if (done) break;
              buffered += decoder.decode(value, { stream: true });
              const events = buffered.split("\n\n");
              buffered = events.pop() ?? "";
              if (events.map(take).includes(true)) break;
            }
            if (!tasksAlone) return end();
            // nothing else was asked for, so for the protocol layer it is over
            alone.add(end);
            known();
            keepAlive = setInterval(() => write(": keepalive\n\n"), KEEP_ALIVE_MS);
            keepAlive.unref();
          };
          const tidy = (): void => {
            known();
            stop();
            clearInterval(keepAlive);
            alone.delete(end);
            reader.cancel().catch(() => undefined); // it ended by itself meanwhile
          };
          tidyUp = tidy;
          pump().catch((error: unknown) => {
            if (over) return;
            over = true;
            tidy();
            controller.error(error);
          });
        },
        cancel() {
          over = true;
          tidyUp();
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: MAX_WAITING_BYTES }),
    );
    return new Response(body, { status: response.status, headers: response.headers });
  }

  return {
    get alone() {
      return alone.size + opening;
    },
    add,
    close() {
      for (const end of [...alone]) end();
    },
  };
}
