import { connect, createServer, type Socket } from "node:net";
import type { Moment } from "./schedule.ts";

/** A TCP proxy that stands between two of the processes, and can be made to fail. */
export interface Relay {
  readonly port: number;
  /** Ends all connections without a word. */
  cut(): void;
  /**
   * Calls `then` once, when the next bytes of that kind arrive and before they go on: a request to the server, or its answer.
   * @returns forgets about it
   */
  next(moment: Exclude<Moment, "now">, then: () => void): () => void;
  close(): Promise<void>;
}

/**
 * Opens a relay on a port of its own.
 * @param upstreams ports of those it may lead to; one connection after the other goes to the next of them
 */
export async function openRelay(upstreams: () => readonly number[]): Promise<Relay> {
  const sockets = new Set<Socket>();
  const waiting: Record<Exclude<Moment, "now">, Set<() => void>> = { request: new Set(), answer: new Set() };
  let turn = 0;

  function pass(from: Socket, to: Socket, moment: Exclude<Moment, "now">): void {
    from.on("data", (chunk) => {
      const [due] = waiting[moment];
      if (due) {
        waiting[moment].delete(due);
        due();
      }
      if (!to.destroyed && !to.write(chunk)) {
        from.pause();
        to.once("drain", () => from.resume());
      }
    });
    from.on("end", () => to.end());
    from.on("error", () => to.destroy());
    from.on("close", () => {
      sockets.delete(from);
      to.destroy();
    });
    sockets.add(from);
  }

  const server = createServer((client) => {
    const ports = upstreams();
    const port = ports[turn++ % Math.max(1, ports.length)];
    if (port === undefined) {
      client.on("error", () => undefined).destroy();
      return;
    }
    const upstream = connect({ host: "127.0.0.1", port, noDelay: true });
    client.setNoDelay(true);
    pass(client, upstream, "request");
    pass(upstream, client, "answer");
  });
  await new Promise<void>((resolve, reject) => server.once("error", reject).listen(0, "127.0.0.1", resolve));
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("the relay has no port");

  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: address.port,
    cut,
    next(moment, then) {
      waiting[moment].add(then);
      return () => void waiting[moment].delete(then);
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      cut();
      await closed;
    },
  };
}
