import { createServer, type IncomingHttpHeaders, request } from "node:http";
import type { AddressInfo } from "node:net";
import { isRecord } from "@tenon/core";

/** One request as it went through. */
export interface Passed {
  /** Which of the upstreams had it. */
  readonly to: number;
  /** The method of the protocol. */
  readonly method: string;
  /** Whether it brought a question's answer. */
  readonly answers: boolean;
}

export interface RoundRobin {
  readonly url: string;
  readonly passed: readonly Passed[];
  close(): Promise<void>;
}

/** What is asked, as far as the test wants to know. */
function read(body: string): Pick<Passed, "method" | "answers"> {
  const message: unknown = body === "" ? undefined : JSON.parse(body);
  if (!isRecord(message)) return { method: "", answers: false };
  const { method, params } = message;
  return { method: String(method ?? ""), answers: isRecord(params) && "requestState" in params };
}

/**
 * A plain proxy as people put in front of replicas: every request goes to the next one, and a replica that cannot be connected to
 * is passed over. It remembers nobody, unless `sticky`: then a session of 2025-11-25 stays where it was opened.
 * @param options.legacyOnly refuses what 2026-07-28 begins with, as a server without it does
 */
export async function roundRobin(
  upstreams: readonly string[],
  options: { sticky?: boolean; legacyOnly?: boolean } = {},
): Promise<RoundRobin> {
  const passed: Passed[] = [];
  const homes = new Map<string, number>();
  let next = 0;
  const homeOf = (headers: IncomingHttpHeaders): number | undefined =>
    options.sticky ? homes.get(String(headers["mcp-session-id"])) : undefined;
  const server = createServer(async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece);
    const body = Buffer.concat(pieces);
    const what = read(body.toString());
    if (options.legacyOnly && what.method === "server/discover") {
      outgoing.writeHead(400).end();
      return;
    }
    const forward = (tries: number): void => {
      const to = homeOf(incoming.headers) ?? next++ % upstreams.length;
      const { method, headers } = incoming;
      const sent = request(new URL(incoming.url ?? "/", upstreams[to]), { method, headers, agent: false });
      sent.once("response", (answer) => {
        const session = answer.headers["mcp-session-id"];
        if (typeof session === "string") homes.set(session, to);
        outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
        answer.on("error", () => outgoing.destroy()).pipe(outgoing); // a replica that dies cuts its answer short
      });
      sent.once("error", (error) => {
        const refused = "code" in error && error.code === "ECONNREFUSED"; // nothing was sent
        if (refused && tries > 1) forward(tries - 1);
        else if (outgoing.headersSent) outgoing.destroy();
        else outgoing.writeHead(502).end();
      });
      outgoing.once("close", () => sent.destroy());
      passed.push({ to, ...what });
      sent.end(body);
    };
    forward(upstreams.length);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo; // a TCP server that listens
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    passed,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
