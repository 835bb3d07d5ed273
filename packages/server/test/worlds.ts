import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, type FetchLike, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { MODERN_REVISION } from "@tenon/core";
import type { OutcomeStore } from "@tenon/store";
import { createSqliteStore } from "@tenon/store/sqlite";
import { build } from "vite";
import type { TenonServer } from "../src/index.ts";
import type { Mode } from "./servers.ts";
import { trip } from "./trip.ts";

/** One running process of a server, or what stands for it, and a client's way to it. */
export interface Place {
  connect(mode: Mode, answer?: (message: string) => unknown): Promise<Client>;
  /** How HTTP requests come here; undefined for stdio. */
  readonly fetch: FetchLike | undefined;
  /** Sends what this place's clients say from now on to another place, as a load balancer might. */
  redirect(other: Place): void;
  kill(): Promise<void>;
}

/** A folder that all processes of one test share, with their keys. */
export interface World {
  readonly folder: string;
  readonly keys: string;
}
export const createWorld = (): World => ({
  folder: mkdtempSync(join(tmpdir(), "tenon-trip-")),
  keys: randomBytes(32).toString("base64url"),
});

function clientFor(mode: Mode, answer: ((message: string) => unknown) | undefined): Client {
  const client = new Client(
    { name: "matrix", version: "1" },
    {
      capabilities: { elicitation: { form: {} } },
      versionNegotiation: { mode: mode === "modern" ? { pin: MODERN_REVISION } : "legacy" },
    },
  );
  client.setRequestHandler("elicitation/create", async (request) => (await answer?.(request.params.message)) as never);
  return client;
}

/** The server's process as one file: dozens of them start in this test, and to compile each would take most of its time. */
async function bundle(): Promise<string> {
  const outDir = fileURLToPath(new URL(`../../../node_modules/.cache/tenon-trip-${process.pid}`, import.meta.url));
  await build({
    configFile: false,
    logLevel: "error",
    resolve: { conditions: ["@tenon/source", "node", "module", "default"] },
    ssr: {
      noExternal: true,
      external: ["better-sqlite3"],
      resolve: { conditions: ["@tenon/source", "node", "module"] },
    },
    build: {
      ssr: fileURLToPath(new URL("./trip-server.ts", import.meta.url)),
      outDir,
      minify: false,
      emptyOutDir: true,
    },
  });
  return join(outDir, "trip-server.js");
}

const file = await bundle();
/** Removes what {@link bundle} made. */
export const removeBundle = (): void => rmSync(dirname(file), { recursive: true, force: true });
const args = (transport: string, { folder }: World): string[] => [file, transport, folder];

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill("SIGKILL");
  await once(child, "exit");
}

async function overStdio(world: World): Promise<Place> {
  const transports: StdioClientTransport[] = [];
  return {
    fetch: undefined,
    redirect: () => undefined,
    async connect(mode, answer) {
      const transport = new StdioClientTransport({
        command: process.execPath,
        args: args("stdio", world),
        env: { ...process.env, TENON_STATE_KEYS: world.keys } as Record<string, string>,
        stderr: "ignore",
      });
      transports.push(transport);
      const client = clientFor(mode, answer);
      await client.connect(transport);
      return client;
    },
    async kill() {
      for (const { pid } of transports) {
        try {
          if (pid) process.kill(pid, "SIGKILL");
        } catch {
          // it is gone already
        }
      }
    },
  };
}

async function overListen(world: World): Promise<Place> {
  const child = spawn(process.execPath, args("http", world), {
    env: { ...process.env, TENON_STATE_KEYS: world.keys },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  const url = new URL(String(line).trim());
  const own: FetchLike = (input, init) => fetch(new URL(new URL(input).pathname, url), init);
  let to = own;
  return {
    fetch: own,
    redirect: (other) => {
      to = other.fetch ?? own;
    },
    async connect(mode, answer) {
      const client = clientFor(mode, answer);
      await client.connect(new StreamableHTTPClientTransport(url, { fetch: (input, init) => to(input, init) }));
      return client;
    },
    kill: () => ended(child),
  };
}

/** A store that dies with its process: from then on nothing it was asked is ever answered. */
function mortal(store: OutcomeStore): { store: OutcomeStore; die(): void } {
  let dead = false;
  const never = new Promise<never>(() => undefined);
  return {
    die: () => {
      dead = true;
    },
    store: new Proxy(store, {
      get(target, name, receiver) {
        const found: unknown = Reflect.get(target, name, receiver);
        return typeof found === "function"
          ? (...given: unknown[]) => (dead ? never : Reflect.apply(found, target, given))
          : found;
      },
    }),
  };
}

async function overFetch(world: World): Promise<Place> {
  const { store, die } = mortal(createSqliteStore(`${world.folder}/outcomes.db`, { leaseMs: 600 }));
  let fail: (reason: Error) => void = () => undefined;
  const death = new Promise<never>((_, reject) => {
    fail = reject;
  });
  death.catch(() => undefined);
  const kill = (): void => {
    die();
    fail(new TypeError("fetch failed: the process is gone"));
  };
  const server: TenonServer = trip(world.folder, { store, replicas: 2, stateKeys: [world.keys] }, async () => {
    kill();
    await new Promise(() => undefined);
  });
  const own: FetchLike = (input, init) => {
    const request = new Request(input, init);
    request.headers.set("host", "127.0.0.1"); // what a socket would bring
    return Promise.race([death, server.fetch(request)]);
  };
  let to = own;
  return {
    fetch: own,
    redirect: (other) => {
      to = other.fetch ?? own;
    },
    async connect(mode, answer) {
      const client = clientFor(mode, answer);
      const url = new URL("http://127.0.0.1/mcp");
      await client.connect(new StreamableHTTPClientTransport(url, { fetch: (input, init) => to(input, init) }));
      return client;
    },
    async kill() {
      kill();
      await server.close();
    },
  };
}

export const places = { stdio: overStdio, "HTTP fetch": overFetch, "HTTP listen": overListen } as const;
export type Transport = keyof typeof places;
