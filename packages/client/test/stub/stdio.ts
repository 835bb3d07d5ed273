import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import {
  complete,
  perform,
  type Stub,
  type StubBehavior,
  type StubReply,
  type StubRequest,
  SUBSCRIPTION_ID,
  toRequest,
} from "./behavior.ts";

/** What a stub can do with one of its processes. */
export interface StubChild {
  readonly pid: number;
  readonly n: number;
  stdout(bytes: string | Uint8Array): void;
  stderr(text: string): void;
  exit(code: number): void;
  /** From now on it ignores the end of its input and SIGTERM. */
  stubborn(): void;
}

export interface StdioStub extends Stub {
  readonly config: { command: string; args: string[]; connectTimeoutMs: number };
  /** Process ids in the order of their start. */
  readonly pids: readonly number[];
  readonly children: readonly StubChild[];
}

interface Live {
  readonly child: StubChild;
  readonly socket: Socket;
  readonly cancels: Map<unknown, AbortController>;
  readonly asked: Map<unknown, (answer: Record<string, unknown>) => void>;
  readonly listening: Set<string | number>;
}

function toChild(socket: Socket, pid: number, n: number): StubChild {
  const command = (...parts: [string, unknown?]) => {
    if (socket.writable) socket.write(`${JSON.stringify(parts)}\n`);
  };
  return {
    pid,
    n,
    stdout: (bytes) => command("out", Buffer.from(bytes).toString("base64")),
    stderr: (text) => command("err", Buffer.from(text).toString("base64")),
    exit: (code) => command("exit", code),
    stubborn: () => command("stubborn"),
  };
}

/** Whether a process is there. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/**
 * A server over stdio: a real child process for every connection, whose words come from `behavior` in the test itself.
 *
 * @example
 * const stub = await stubStdio({ onCall: (_, reply) => reply.die() });
 * const client = createClient({ servers: { s: stub.config } });
 */
export async function stubStdio(behavior: StubBehavior = {}, onStart?: (child: StubChild) => void): Promise<StdioStub> {
  const era = behavior.era ?? "modern";
  const requests: StubRequest[] = [];
  const children: StubChild[] = [];
  const live = new Set<Live>();
  let asks = 0;

  const replyTo = (peer: Live, request: StubRequest, controller: AbortController): StubReply => {
    const send = (message: object) => peer.child.stdout(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
    return {
      result: (value) => send({ id: request.id, result: complete(era, request.method, value) }),
      error: (code, message, data) => send({ id: request.id, error: { code, message, data } }),
      notify: (method, params) => send({ method, params }),
      ask: (method, params) => {
        const id = `ask-${++asks}`;
        send({ id, method, params });
        return new Promise((resolve) => peer.asked.set(id, resolve));
      },
      raw: peer.child.stdout,
      end: () => void peer.socket.write('["close"]\n'),
      die: (code = 1) => peer.child.exit(code),
      http: () => {},
      stream: () => {},
      stderr: peer.child.stderr,
      signal: controller.signal,
    };
  };

  const receive = (peer: Live, line: string) => {
    const message = JSON.parse(line);
    if (message.method === undefined) return peer.asked.get(message.id)?.(message.result ?? message.error);
    const request = toRequest(message, requests, { headers: {}, connection: peer.child.n });
    requests.push(request);
    const { id, method, params } = request;
    if (method === "notifications/cancelled") {
      peer.cancels.get(params.requestId)?.abort();
      peer.listening.delete(params.requestId as string); // a listener's id is a text or a number
    }
    const controller = new AbortController();
    if (id !== undefined) peer.cancels.set(id, controller);
    if (method === "subscriptions/listen" && id !== undefined && !behavior.on?.[method] && era === "modern") {
      peer.listening.add(id);
      const acknowledged = { notifications: params.notifications, _meta: { [SUBSCRIPTION_ID]: id } };
      return replyTo(peer, request, controller).notify("notifications/subscriptions/acknowledged", acknowledged);
    }
    void perform(behavior, request, replyTo(peer, request, controller));
  };

  const server = createServer({ allowHalfOpen: true }, (socket) => {
    let peer: Live | undefined;
    socket.on("error", () => {});
    socket.on("end", () => socket.end());
    socket.on("close", () => peer && live.delete(peer));
    const lines = createInterface({ input: socket });
    lines.on("error", () => {}); // the socket's, told a second time
    lines.on("line", (line) => {
      if (peer) return receive(peer, line);
      const child = toChild(socket, Number(line), children.length + 1);
      peer = { child, socket, cancels: new Map(), asked: new Map(), listening: new Set() };
      children.push(child);
      live.add(peer);
      onStart?.(child);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // listening on a port
  const file = fileURLToPath(new URL("./pipe.mjs", import.meta.url));

  return {
    // a process takes its time on a busy machine
    config: { command: process.execPath, args: [file, String(port)], connectTimeoutMs: 15_000 },
    requests,
    children,
    count: (method) => requests.filter((request) => request.method === method).length,
    get pids() {
      return children.map(({ pid }) => pid);
    },
    get opened() {
      return children.length;
    },
    get open() {
      return children.filter(({ pid }) => isAlive(pid)).length;
    },
    get listeners() {
      return [...live].reduce((sum, { listening }) => sum + listening.size, 0);
    },
    push: (method, params = {}) => {
      const say = ({ child }: Live, more: object) =>
        child.stdout(`${JSON.stringify({ jsonrpc: "2.0", method, params: { ...params, ...more } })}\n`);
      for (const peer of live) {
        if (era === "legacy") say(peer, {});
        else for (const id of peer.listening) say(peer, { _meta: { [SUBSCRIPTION_ID]: id } });
      }
    },
    cutListeners: () => {
      for (const { child, listening } of live) {
        for (const requestId of listening) {
          const message = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId } };
          child.stdout(`${JSON.stringify(message)}\n`);
        }
        listening.clear();
      }
    },
    close: async () => {
      for (const { socket } of live) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}
