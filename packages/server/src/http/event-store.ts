import type { EventStore, JSONRPCMessage } from "@modelcontextprotocol/server";

interface Stored {
  readonly id: number;
  readonly stream: string;
  readonly message: JSONRPCMessage;
  readonly bytes: number;
}

/**
 * What one legacy session's streams sent lately, so that a client which lost its connection reads on from `Last-Event-ID`
 * (2025-11-25, resumability). The oldest events go when there are too many: a client away for longer starts again.
 */
export class SessionEvents implements EventStore {
  readonly #events: Stored[] = [];
  readonly #maxEvents: number;
  readonly #maxBytes: number;
  #bytes = 0;
  #last = 0;

  constructor(maxEvents: number = 256, maxBytes: number = 1024 * 1024) {
    this.#maxEvents = maxEvents;
    this.#maxBytes = maxBytes;
  }

  async storeEvent(stream: string, message: JSONRPCMessage): Promise<string> {
    const bytes = JSON.stringify(message).length;
    this.#last += 1;
    this.#events.push({ id: this.#last, stream, message, bytes });
    this.#bytes += bytes;
    while (this.#events.length > this.#maxEvents || this.#bytes > this.#maxBytes) {
      const gone = this.#events.shift();
      if (!gone) break;
      this.#bytes -= gone.bytes;
    }
    return String(this.#last);
  }

  async getStreamIdForEventId(id: string): Promise<string | undefined> {
    return this.#events.find((event) => String(event.id) === id)?.stream;
  }

  async replayEventsAfter(
    lastEventId: string,
    { send }: { send: (id: string, message: JSONRPCMessage) => Promise<void> },
  ): Promise<string> {
    const from = this.#events.find((event) => String(event.id) === lastEventId);
    if (!from) throw new Error("The event is no longer kept");
    for (const event of this.#events) {
      // a priming event carries nothing: it only gives the client an id to resume from
      if (event.id > from.id && event.stream === from.stream && Object.keys(event.message).length > 0) {
        await send(String(event.id), event.message);
      }
    }
    return from.stream;
  }
}
