import { chmodSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, request } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { type AddressInfo, createServer as createTcpServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ContractKey, createKeyRing, newContractKey } from "@tenon/core/contract";
import { createServer } from "@tenon/server";
import { type HttpBehavior, stubHttp } from "../../client/test/stub/http.ts";
import { pemPath } from "../../server/test/certificates.ts";
import type { ExamOptions, Target } from "../src/doctor/visit.ts";

type Json = Record<string, unknown>;

/** A server that is broken in one way. */
export interface Fixture {
  readonly config: Target["config"];
  readonly options?: ExamOptions;
  readonly close?: () => unknown;
}

const open: Server[] = [];
const sockets = new Set<Socket>();

/** A program of a few lines on a free port. */
export async function tcp(onSocket: (socket: Socket) => void): Promise<number> {
  const server = createTcpServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
    onSocket(socket);
  });
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** Closes what the fixtures did not close themselves. */
export function closeFixtures(): void {
  for (const socket of sockets) socket.destroy();
  for (const server of open) server.close();
}

export const http = async (behavior: HttpBehavior, options: ExamOptions = {}): Promise<Fixture> => {
  const stub = await stubHttp(behavior);
  return { config: stub.config, options, close: stub.close };
};

/** Every request gets the same answer. */
export const always = (status: number, headers: Record<string, string> = {}, body = ""): Promise<Fixture> =>
  http({ onHttp: (_, res) => Boolean(res.writeHead(status, headers).end(body)) });

export const script = (code: string): Fixture => ({ config: { command: process.execPath, args: ["-e", code] } });

export const tools = (...list: (string | Json)[]): Promise<Fixture> => http({ tools: list });
export const tool = (inputSchema: Json, more: Json = {}): Json => ({ name: "t", inputSchema, ...more });

export const https = async (cert: { cert: string; key: string }, host: string, ca?: string): Promise<Fixture> => {
  const server = createHttpsServer(cert, (_, res) => void res.end());
  await new Promise<void>((resolve) => server.listen(0, host, resolve));
  const { port } = server.address() as AddressInfo;
  const config = { url: `https://${host}:${port}/mcp`, ...(ca !== undefined && { ca }) };
  return { config, close: () => server.close() };
};

export const EXPIRED = {
  cert: readFileSync(pemPath("expired.cert"), "utf8"),
  key: readFileSync(pemPath("expired.key"), "utf8"),
};

export const KEY: ContractKey = newContractKey({ kid: "now", alg: "HS256" });
export const OTHER: ContractKey = newContractKey({ kid: "now", alg: "HS256" });
const SCHEMA = { type: "object", properties: { user_id: { type: "string" } }, required: ["user_id"] } as const;
export const declared = (
  capabilities: readonly string[] = ["tools.list", "tools.execute"],
): Parameters<ReturnType<typeof createKeyRing>["sign"]>[0] => ({
  version: "0.4.2",
  server_id: "orders",
  capabilities,
  context_schema: SCHEMA as unknown as ReturnType<typeof declared>["context_schema"],
});
export const ring = createKeyRing([KEY]);

/** A server with a contract. */
export const contract = (declaration: unknown, options: ExamOptions = { keys: ring }): Promise<Fixture> =>
  http(
    { capabilities: { tools: {}, extensions: { "dev.tenon/context": declaration } } },
    { context: { user_id: "alice" }, ...options },
  );

const token = (claims: Json): string =>
  `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg`;

/** A server that refuses callers; its metadata is where it should be if there is any. */
export async function guarded(status: number, challenge: string, given?: Json, metadata = false): Promise<Fixture> {
  const stub = await stubHttp({
    onHttp: (req, res) => {
      const isMetadata = metadata && req.url?.startsWith("/.well-known/oauth-protected-resource") === true;
      if (!isMetadata) return Boolean(res.writeHead(status, { "www-authenticate": challenge }).end());
      const body = { resource: stub.url, authorization_servers: ["https://id.example"] };
      return Boolean(res.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body)));
    },
  });
  const headers = given && { Authorization: `Bearer ${token(given)}` };
  return { config: stub.config, options: { ...(headers && { headers }) }, close: stub.close };
}

export function unexecutable(): string {
  const path = join(mkdtempSync(join(tmpdir(), "tenon-doctor-")), "server.sh");
  writeFileSync(path, "#!/bin/sh\necho\n");
  chmodSync(path, 0o644);
  return path;
}

/** A healthy server behind a proxy that passes on only the headers it knows. */
export async function headless(options: ExamOptions = {}): Promise<Fixture> {
  const server = createServer({ name: "behind", version: "1.0.0", logLevel: "error" });
  server.tool("t", { description: "Says t." }, () => "t");
  const { url } = await server.listen({ port: 0 });
  const known = ["accept", "content-type", "content-length", "mcp-session-id"];
  const proxy = createHttpServer((req, res) => {
    const headers = Object.fromEntries(Object.entries(req.headers).filter(([name]) => known.includes(name)));
    const onward = request(url, { method: req.method ?? "POST", headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(res);
    });
    req.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const close = async (): Promise<void> => {
    proxy.close();
    await server.close();
  };
  return { config: { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}/mcp` }, options, close };
}

/** A server over stdio in a few lines; `before` runs first. */
export const stdio = (before: string, capabilities = "{ tools: {} }"): string => `${before};
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const results = { "server/discover": { supportedVersions: ["2026-07-28"], capabilities: ${capabilities} },
                    "tools/list": { tools: [{ name: "t", inputSchema: { type: "object" } }] } };
  const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: "no " + method } };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
})`;
