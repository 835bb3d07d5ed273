import { randomBytes } from "node:crypto";
import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { type Client, createClient } from "@tenon/client";
import { bearer } from "@tenon/client/auth";
import { openSigningKey, SIGNING_KEY_FILE, signingKeyFiles } from "@tenon/server/development";
import pg from "pg";
import { ISSUER } from "../src/servers/access.ts";
import { SERVER_NAMES, type ServerName } from "../src/servers/names.ts";
import { dataDirectory, ENTRY, openChat, Program } from "./desk.ts";
import { type RoundRobin, roundRobin } from "./proxy.ts";
import { tokenFor } from "./token-for.ts";

type Later = (work: () => Promise<void>) => void;

/** Replicas of each server. */
export const REPLICAS = 3;

/** One process of a server. */
export interface Replica {
  readonly program: Program;
  readonly url: string;
}

/**
 * The desk as several machines run it: processes with a data directory each, which share a database, the keys that seal questions and
 * the public key that tokens are checked with; proxies in front that remember nobody.
 */
export interface Scene {
  readonly replicas: Readonly<Record<ServerName, readonly Replica[]>>;
  readonly proxies: Readonly<Record<ServerName, RoundRobin>>;
  /** What every process is told. */
  readonly env: Readonly<Record<string, string>>;
  /** Starts one more process of a server. */
  serve(name: ServerName, ...args: string[]): Promise<Replica>;
  /** Starts one more process that runs tasks. */
  work(own: Later): Promise<Program>;
  /** An agent on a machine of its own. */
  agent(thread: string, later: Later): Program;
  /** A client of the order server at an address. */
  client(url: string, later: Later): Promise<Client>;
  token(): Promise<string>;
  query<Row extends pg.QueryResultRow>(sql: string, values?: unknown[]): Promise<Row[]>;
  addOrders(ids: readonly string[], amount: number): Promise<void>;
  /** Orders that were refunded, those of `prefix` only. */
  refunds(prefix?: string): Promise<string[]>;
}

export async function openScene(url: string, later: Later): Promise<Scene> {
  const schema = `desk_scale_${process.pid}_${Date.now()}`;
  const pool = new pg.Pool({ connectionString: url, max: 2, options: `-c search_path=${schema}` });
  later(async () => {
    await pool.query(`drop schema if exists ${schema} cascade`);
    await pool.query(`drop schema if exists ${schema}_jobs cascade`); // of pg-boss
    await pool.end();
  });
  const env = {
    TENON_DATABASE_URL: url,
    TENON_DATABASE_SCHEMA: schema,
    TENON_STATE_KEYS: randomBytes(32).toString("base64url"),
  };
  const home = dataDirectory(later);
  const key = join(home, SIGNING_KEY_FILE);
  await openSigningKey(key);
  const { jwks } = signingKeyFiles(key);

  async function serve(name: ServerName, ...args: string[]): Promise<Replica> {
    const trust = ["--issuer", ISSUER, "--jwks", jwks];
    const words = ["serve", name, "--port", "0", "--no-worker", "--data", dataDirectory(later), ...trust, ...args];
    const program = new Program([process.execPath, ENTRY, ...words], env, later);
    const [address = ""] = /https?:\S+\/mcp\n/.exec(await program.sees(/https?:\S+\/mcp\n/)) ?? [];
    return { program, url: address.trim() };
  }
  // all of them at once, on a database without tables
  const started = SERVER_NAMES.map(async (name) => {
    const replicas = await Promise.all(Array.from({ length: REPLICAS }, () => serve(name)));
    const proxy = await roundRobin(replicas.map((replica) => replica.url));
    later(() => proxy.close());
    return { name, replicas, proxy };
  });
  const parts = await Promise.all(started);
  const byName = <T>(pick: (part: (typeof parts)[number]) => T) =>
    Object.fromEntries(parts.map((part) => [part.name, pick(part)])) as Record<ServerName, T>; // one of each
  const proxies = byName(({ proxy }) => proxy);
  const query: Scene["query"] = async (sql, values) => (await pool.query(sql, values)).rows;
  return {
    replicas: byName(({ replicas }) => replicas),
    proxies,
    env,
    serve,
    async work(own) {
      const words = ["worker", "--data", dataDirectory(own), "--concurrency", "1"];
      const { TENON_STATE_KEYS: _, ...rest } = env; // as in docs/deploy: a worker seals nothing
      const worker = new Program([process.execPath, ENTRY, ...words], rest, own);
      await worker.sees("worker is ready");
      return worker;
    },
    agent(thread, own) {
      const directory = dataDirectory(own);
      for (const file of Object.values(signingKeyFiles(key))) {
        copyFileSync(file, join(directory, file.slice(home.length + 1)));
      }
      const servers = ["--order-url", proxies.order.url, "--notification-url", proxies.notification.url];
      return openChat(directory, { args: [...servers, "--thread", thread], env }, own);
    },
    async client(address, own) {
      const servers = { order: { url: address, auth: bearer(await tokenFor(home, "order")) } };
      const client = createClient({
        servers,
        elicitation: (question) => {
          const name = question.mode === "form" ? (question.fields[0]?.name ?? "") : "";
          return { action: "accept", content: { [name]: "confirm" } };
        },
      });
      own(() => client.close());
      return client;
    },
    token: () => tokenFor(home, "order"),
    query,
    async addOrders(ids, amount) {
      await query("insert into orders select id, 'delivered', $2 from unnest($1::text[]) as id", [ids, amount]);
    },
    async refunds(prefix = "") {
      const rows = await query<{ order_id: string }>(
        "select order_id from refunds where order_id like $1 order by order_id",
        [`${prefix}%`],
      );
      return rows.map((row) => row.order_id);
    },
  };
}
