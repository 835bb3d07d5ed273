import { ConfigError, ConnectionError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { EventBus } from "./events.ts";
import type { Signals } from "./signals.ts";

const LONGEST_TOPIC = 200;
const MOST_BYTES = 7_000;
/** Postgres carries 7,999 bytes; the words around topic and message take the rest. */
const MOST_BYTES_WITH_TOPIC = 7_900;

/** Refuses what cannot travel, the same everywhere: what works in memory works on Postgres. */
function check(topic: string, text: string | undefined): void {
  if (typeof topic !== "string" || topic === "" || topic.length > LONGEST_TOPIC) {
    const given = typeof topic === "string" ? `${topic.length} characters` : typeof topic;
    throw new ConfigError(`The topic of an event is a text of 1 to ${LONGEST_TOPIC} characters, given ${given}`, {
      code: "event",
    });
  }
  if (text === undefined) throw new ConfigError(`The message of the event "${topic}" must be JSON`, { code: "event" });
  const bytes = Buffer.byteLength(text);
  if (bytes <= MOST_BYTES && bytes + Buffer.byteLength(JSON.stringify(topic)) <= MOST_BYTES_WITH_TOPIC) return;
  throw new ConfigError(
    `The message of the event "${topic}" has ${bytes} bytes as JSON, at most ${MOST_BYTES} can travel; send an id and let ` +
      "whoever hears it look the rest up",
    { code: "event" },
  );
}

/** The event bus over any signals. @param close ends its part in them */
export function createEventBus(signals: Signals, close: () => Promise<void>): EventBus {
  const ends = new Set<() => void>();
  let closed = false;
  const topicOf = (topic: string): string => `event:${topic}`;

  return {
    shared: signals.shared,
    async publish(topic, message) {
      check(topic, JSON.stringify(message));
      if (closed) throw new ConnectionError("The event bus is closed", { code: "store_closed" });
      await signals.send({ topic: topicOf(topic), message });
    },
    subscribe(topic, listener, options = {}) {
      check(topic, "");
      checkOptions(options, ["onGap"], "subscribe(topic, listener, options)");
      if (closed) return () => undefined;
      const stop = signals.listen(topicOf(topic), { hear: listener, gap: () => options.onGap?.() });
      const end = (): void => {
        stop();
        ends.delete(end);
      };
      ends.add(end);
      return end;
    },
    async close() {
      if (closed) return;
      closed = true;
      for (const end of [...ends]) end();
      await close();
    },
  };
}
