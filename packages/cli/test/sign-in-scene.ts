import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer, type IncomingHttpHeaders, request } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, createClient, renderText } from "@tenon/client";
import type { Auth } from "@tenon/client/auth";
import { createServer, type ListenOptions, type TenonServer } from "@tenon/server";
import { type JwtOptions, jwt } from "@tenon/server/auth";
import { afterEach } from "vitest";
import { Browser, type Choice, consent } from "./browser.ts";
import { authServer, type RunningServer } from "./tenon.ts";

// What the parts meet on: an authorization server as a process, servers on real ports, and a person at a browser.

const opened: { close(): unknown }[] = [];
/** Every file calls this: a hook set here would belong to the first file of a worker only. */
export function closeAfterEach(): void {
  afterEach(async () => {
    for (const one of opened.splice(0).reverse()) await one.close();
  });
}

/** Closes something when the test is over, the last one first. */
export function closing<T extends { close(): unknown }>(one: T): T {
  opened.push(one);
  return one;
}

/** A folder that is gone after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "tenon-sign-in-"));
  closing({ close: () => rmSync(path, { recursive: true, force: true }) });
  return path;
}

/** A port that was free just now: a server's address must be known before it runs, since its tokens are issued for it. */
export async function freePort(): Promise<number> {
  const server = createTcpServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo; // it listens on a port
  await new Promise((resolve) => server.close(resolve));
  return port;
}

export const SCOPES = "orders:read orders:refund orders:admin";

/** `tenon auth-server` for these servers, ended after the test. */
export async function startAuthServer(
  resources: readonly string[],
  args: readonly string[] = [],
  cwd = folder(),
): Promise<RunningServer> {
  const named = resources.flatMap((one) => ["--resource", one]);
  const running = await authServer([...named, "--scope", SCOPES, ...args], { cwd });
  closing({ close: () => running.stop() });
  return running;
}

/** What `whoami` says. */
export interface Who {
  readonly subject: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  readonly claims: { readonly iss: string; readonly aud: string; readonly exp: number; readonly jti: string };
}

/** A server of orders that takes the issuer's tokens: everything needs `orders:read`, a refund needs more. */
export function ordersServer(issuer: string, audience: string, more: Partial<JwtOptions> = {}) {
  const refunds: string[] = [];
  const keys = more.publicKey === undefined ? { jwksUrl: `${issuer}/jwks` } : {};
  const server: TenonServer = createServer({
    name: "orders",
    version: "1.0.0",
    logSink: () => undefined,
    auth: jwt({ issuer, audience, requiredScopes: ["orders:read"], ...keys, ...more }),
    scopeHierarchy: { "orders:admin": ["orders:refund", "orders:read"] },
  });
  server.tool("whoami", {}, (_, ctx) => JSON.stringify(ctx.caller));
  server.tool("refund", { scopes: ["orders:refund"] }, (_, ctx) => {
    refunds.push(ctx.caller?.subject ?? "");
    return "refunded";
  });
  return { server: closing(server), refunds };
}

/** Serves orders at an address of their own, with an authorization server that issues tokens for it. */
export async function startOrders(
  given: { authServer?: readonly string[]; jwt?: Partial<JwtOptions>; listen?: ListenOptions; cwd?: string } = {},
) {
  const port = await freePort();
  const url = `${given.listen?.tls ? "https" : "http"}://127.0.0.1:${port}/mcp`;
  const running = await startAuthServer([url], given.authServer, given.cwd);
  const orders = ordersServer(running.issuer, url, given.jwt);
  await orders.server.listen({ port, ...given.listen });
  return { ...orders, url, issuer: running.issuer, authServer: running };
}

/** A request as it passed. */
export interface Passed {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  status: number;
}

/** An address in front of a server, which makes it one of the older revision when `era` says so, and notes what passes. */
export async function openFront(era: "modern" | "legacy") {
  const passed: Passed[] = [];
  let target = "";
  const front = createHttpServer((incoming, outgoing) => {
    const { method = "GET", url: path = "/", headers } = incoming;
    const noted: Passed = { method, path, headers, status: 0 };
    passed.push(noted);
    const unknown = era === "legacy" && headers["mcp-protocol-version"] === "2026-07-28";
    // an older server asks for the token first, too
    if (unknown && headers.authorization !== undefined) {
      noted.status = 400;
      const error = { code: -32_000, message: "Bad Request: Unsupported protocol version" };
      outgoing.writeHead(400, { "content-type": "application/json" });
      outgoing.end(JSON.stringify({ jsonrpc: "2.0", id: null, error }));
      return;
    }
    const { host } = new URL(target);
    const onward = request(new URL(path, target), { method, headers: { ...headers, host } }, (answer) => {
      noted.status = answer.statusCode ?? 0;
      outgoing.writeHead(noted.status, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => front.once("listening", resolve));
  closing({
    close: () => {
      front.close();
      front.closeAllConnections();
    },
  });
  const { port } = front.address() as AddressInfo; // it listens on a port
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    passed,
    /** Where requests go from now on. */
    lead: (to: string) => {
      target = to;
    },
  };
}

/** A person at a browser: keeps its cookies, fills in the pages, and is sent back to the program. */
export function person(choice: () => Choice = () => ({})) {
  const browser = new Browser();
  /** The scopes on each consent page that was shown. */
  const asked: string[][] = [];
  const failures: unknown[] = [];
  const visit = async (url: string): Promise<void> => {
    const { offered, location } = await consent(browser, url, choice());
    asked.push(offered);
    const back = await fetch(location);
    if (back.status !== 200) throw new Error(`the program answered ${back.status}`);
    await back.text();
  };
  return {
    asked,
    failures,
    /** For `oauth({ onAuthorize })`. */
    onAuthorize: ({ url }: { url: string }): undefined => {
      visit(url).catch((error) => failures.push(error));
    },
  };
}

/** A client of one server, `orders`, closed after the test. */
export function clientOf(url: string, auth: Auth, more: { ca?: string[] } = {}): Client {
  const client = createClient({
    servers: { orders: { url, auth, required: true, connectTimeoutMs: 30_000, ...more } },
  });
  return closing({ close: () => client.close(), client }).client;
}

export async function whoami(client: Client): Promise<Who> {
  return JSON.parse(renderText((await client.callTool("orders", "whoami", {})).content));
}
export const refund = async (client: Client): Promise<string> =>
  renderText((await client.callTool("orders", "refund", {})).content);

/** The code an error has. */
export const codeOf = (promise: Promise<unknown>): Promise<string | undefined> =>
  promise.then(
    () => "no error",
    (error: { code?: string }) => error.code,
  );

interface Entry extends Record<string, unknown> {
  accessToken: string;
  refreshToken?: string;
}

/** The tokens in a file of `fileTokenStore`. */
export function readTokens(path: string): Entry {
  const { entries } = JSON.parse(readFileSync(path, "utf8"));
  const found = Object.entries<Entry>(entries).find(([key]) => key.startsWith("tokens "));
  if (!found) throw new Error("no tokens are kept");
  return found[1];
}
/** Changes them, as time or an attacker would. */
export function changeTokens(path: string, change: (tokens: Entry) => Partial<Entry>): void {
  const file = JSON.parse(readFileSync(path, "utf8"));
  for (const [key, value] of Object.entries<Entry>(file.entries)) {
    if (key.startsWith("tokens ")) file.entries[key] = { ...value, ...change(value) };
  }
  writeFileSync(path, JSON.stringify(file));
}
