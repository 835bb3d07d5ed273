import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import type { ReadableStream } from "node:stream/web";
import type { Stores } from "@tenon/store";
import { openSqlite } from "@tenon/store/sqlite";
import { trip } from "./trip.ts";

// one process of the matrix: `trip-server.ts <stdio|listen|fetch> <folder>`, keys in TENON_STATE_KEYS, a database in TRIP_…
const [transport, folder = "."] = process.argv.slice(2);
const leaseMs = 600;

async function openStore(): Promise<Stores> {
  const { TRIP_DATABASE_URL: url, TRIP_SCHEMA: schema } = process.env;
  if (url === undefined || schema === undefined) return openSqlite({ path: `${folder}/outcomes.db`, leaseMs });
  const { openPostgres } = await import("@tenon/store/postgres");
  return openPostgres({ url, schema, leaseMs });
}

/** What a framework does around `server.fetch`: a web request in, a web response out. */
async function adapt(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const left = new AbortController();
  outgoing.once("close", () => left.abort());
  const bodyless = incoming.method === "GET" || incoming.method === "DELETE";
  const request = new Request(`http://${incoming.headers.host}${incoming.url}`, {
    method: incoming.method ?? "GET",
    headers: Object.entries(incoming.headers).map(([name, value]): [string, string] => [name, String(value)]),
    signal: left.signal,
    ...(!bodyless && { body: Buffer.concat(await incoming.toArray()) }),
  });
  const response = await server.fetch(request);
  outgoing.writeHead(response.status, Object.fromEntries(response.headers));
  if (response.body === null) outgoing.end();
  // the same stream under the name Node has for it
  else
    Readable.fromWeb(response.body as ReadableStream)
      .on("error", () => outgoing.destroy())
      .pipe(outgoing);
}

const server = trip(folder, { store: await openStore(), replicas: true });
if (transport === "stdio") {
  await server.stdio();
  process.exit(0);
} else if (transport === "listen") {
  console.log((await server.listen({ port: 0 })).url);
} else {
  const http = createServer((incoming, outgoing) => {
    adapt(incoming, outgoing).catch(() => outgoing.destroy());
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  console.log(`http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`); // a port, since it does not listen on a pipe
}
