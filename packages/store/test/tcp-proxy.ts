import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A line to a TCP server that a test can cut. */
export interface TcpProxy {
  /** The address of the server, through the line. */
  readonly url: string;
  /** Breaks every connection there is. */
  cut(): void;
  /** While true nothing arrives any more on either side, and nobody is told: a cable that was pulled. */
  silent: boolean;
  /** While true nobody can connect. */
  down: boolean;
  /** How many connections are open. */
  readonly open: number;
  close(): Promise<void>;
}

export async function openTcpProxy(target: string): Promise<TcpProxy> {
  const { hostname, port } = new URL(target);
  const sockets = new Set<Socket>();
  let silent = false;
  let down = false;
  const server = createServer((near) => {
    if (down) return void near.destroy();
    const far = connect(Number(port || 5432), hostname);
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (chunk) => {
        if (!silent) to.write(chunk);
      });
      from.on("error", () => undefined);
      from.on("close", () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const url = new URL(target);
  url.host = `127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: url.href,
    cut,
    get silent() {
      return silent;
    },
    set silent(value) {
      silent = value;
    },
    get down() {
      return down;
    },
    set down(value) {
      down = value;
      if (value) cut();
    },
    get open() {
      return sockets.size / 2;
    },
    async close() {
      cut();
      server.close();
      await once(server, "close");
    },
  };
}
