import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, type FetchLike, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { MODERN_REVISION } from "@tenon/core/internal";
import pg from "pg";
import { program } from "../../../test/programs.ts";
import type { Mode } from "./servers.ts";

/** One running process of a server, or on stdio the command for it, and a client's way to it. */
export interface Place {
  connect(mode: Mode, answer?: (message: string) => unknown): Promise<Client>;
  /** How HTTP requests come here; undefined for stdio. */
  readonly fetch: FetchLike | undefined;
  /** Sends what this place's clients say from now on to another place, as a load balancer might. */
  redirect(other: Place): void;
  kill(): Promise<void>;
}

/** What all processes of one test share: a folder, their keys, and where their outcomes are. */
export interface World {
  readonly folder: string;
  readonly keys: string;
  /** A schema of a Postgres database; else outcomes are in a SQLite file of the folder. */
  readonly database: { readonly url: string; readonly schema: string } | undefined;
  remove(): Promise<void>;
}

/** @param url of a Postgres database, which gets a schema of its own for this world */
export function createWorld(url?: string): World {
  const folder = mkdtempSync(join(tmpdir(), "tenon-trip-"));
  const schema = `tenon_trip_${randomBytes(6).toString("hex")}`;
  return {
    folder,
    keys: randomBytes(32).toString("base64url"),
    database: url === undefined ? undefined : { url, schema },
    async remove() {
      rmSync(folder, { recursive: true, force: true });
      if (url === undefined) return;
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      await client.query(`drop schema if exists ${schema} cascade`);
      await client.query(`drop schema if exists ${schema}_jobs cascade`); // of pg-boss
      await client.end();
    },
  };
}

/** What a process of the world is told besides its arguments. */
const environment = ({ keys, database }: World): Record<string, string> => ({
  ...(process.env as Record<string, string>), // a process has no variables without a value
  TENON_STATE_KEYS: keys,
  ...(database && { TRIP_DATABASE_URL: database.url, TRIP_SCHEMA: database.schema }),
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

const file = await program("./trip-server.ts", import.meta.url);
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
        env: environment(world),
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

/** @param how the process answers HTTP: by `listen()`, or by its `fetch` behind an adapter of another framework */
async function overHttp(how: "listen" | "fetch", world: World): Promise<Place> {
  const child = spawn(process.execPath, args(how, world), {
    env: environment(world),
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

export const places = {
  stdio: overStdio,
  "HTTP fetch": (world: World) => overHttp("fetch", world),
  "HTTP listen": (world: World) => overHttp("listen", world),
} as const;
export type Transport = keyof typeof places;
