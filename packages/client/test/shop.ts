import { createMcpHandler, McpServer } from "@modelcontextprotocol/server";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { type Client, type ClientOptions, createClient } from "../src/index.ts";
import { type Listening, listen } from "./servers.ts";

/** What a tool of the shop does; the count of its runs so far comes first. */
type Work = (run: number, args: Record<string, unknown>) => object | string | Promise<object | string>;

/** One tool of a shop. */
export interface ShopTool {
  annotations?: Record<string, boolean>;
  input?: z.ZodObject;
  work?: Work;
}

/** A server of the newer revision with these tools, and how often each ran. */
export interface Shop extends Listening {
  readonly runs: Record<string, number>;
  /** Arguments the tools got, in order. */
  readonly got: Record<string, unknown>[];
}

const WORDS = z.looseObject({});

/** Serves the tools over real HTTP until the test ends. */
export async function shop(tools: Record<string, ShopTool>): Promise<Shop> {
  const runs: Record<string, number> = {};
  const got: Record<string, unknown>[] = [];
  const handler = createMcpHandler(
    () => {
      const server = new McpServer({ name: "shop", version: "1.0.0" });
      for (const [name, { annotations = {}, input = WORDS, work = (run: number) => `run ${run}` }] of Object.entries(
        tools,
      )) {
        server.registerTool(name, { inputSchema: input, annotations }, async (args: Record<string, unknown>) => {
          runs[name] = (runs[name] ?? 0) + 1;
          got.push(args);
          const done = await work(runs[name], args);
          return typeof done === "string" ? { content: [{ type: "text", text: done }] } : { content: [], ...done };
        });
      }
      return server;
    },
    { legacy: "reject" },
  );
  const listening = await listen((request) => handler.fetch(request));
  onTestFinished(() => listening.kill());
  return { ...listening, runs, got };
}

/** A client that is closed when the test ends. */
export function clientOf(url: string, options: Omit<ClientOptions, "servers"> = {}): Client {
  const client = createClient({ servers: { s: { url } }, ...options });
  onTestFinished(() => client.close());
  return client;
}
