import { describe, expect, it } from "vitest";
import type { Interceptor, RoutedRequest, ToolRuntime } from "../src/index.ts";
import { replica, said } from "./replicas-scene.ts";
import { closeAfterEach, connect, type HttpBehavior } from "./stub/index.ts";

closeAfterEach();

const threads = Array.from({ length: 24 }, (_, n) => `thread-${n}`);
const urls = (all: readonly { url: string }[]) => all.map(({ url }) => url);

describe("the replica of a request", () => {
  it("is that of its thread for what is read in it as well", async () => {
    const reads = (name: string): HttpBehavior => ({
      capabilities: { tools: {}, resources: {}, prompts: {} },
      on: {
        "resources/read": ({ params }) => ({ contents: [{ uri: params.uri, text: name }] }),
        "prompts/get": () => ({ messages: [{ role: "user", content: { type: "text", text: name } }] }),
      },
    });
    const all = await Promise.all(["a", "b", "c"].map((name) => replica(name, reads(name))));
    const context = ({ threadId }: ToolRuntime) => ({ session_id: threadId }); // another key than the thread's
    const client = connect({ kb: { replicas: urls(all), contract: { context } } });
    const calls = await Promise.all(threads.map((thread) => said(client, "look", "x", thread)));
    const read = async (threadId: string) => {
      const [text] = await client.readResources("kb", [`kb://${threadId}`], { runtime: { threadId } });
      const [message] = await client.getPrompt("kb", "greet", {}, { runtime: { threadId } });
      return [text?.asString(), message?.content];
    };
    const places = calls.map((answer) => answer.split(" ")[0]);
    expect(new Set(places).size).toBe(3);
    expect(await Promise.all(threads.map(read))).toEqual(places.map((name) => [name, { type: "text", text: name }]));
  });

  it("is found by the whole context: what the configuration gives, and over it what an interceptor adds", async () => {
    const all = await Promise.all(["a", "b", "c"].map((name) => replica(name)));
    const seen: unknown[] = [];
    const key = ({ context }: RoutedRequest) => void seen.push(context);
    const add: Interceptor = (request, next) =>
      next(request.with({ meta: { "dev.tenon/context": { session_id: String(request.args.id), by: "call" } } }));
    const client = connect(
      { kb: { replicas: urls(all), contract: { context: { tenant: "x", by: "file" } } } },
      { routing: { key }, interceptors: [add] },
    );
    const place = async (id: string) => (await said(client, "look", id)).split(" ")[0];
    const places = await Promise.all(threads.map(place));
    expect(new Set(places).size).toBe(3); // by session_id
    expect(await Promise.all(threads.map(place))).toEqual(places);
    expect(seen).toContainEqual({ tenant: "x", by: "call", session_id: "thread-0" });
  });
});
