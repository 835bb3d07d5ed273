import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { TenonServer } from "../src/index.ts";
import { both, call, comparable, onlyLegacy, onlyModern } from "./paths-cases.ts";
import { pathsServer } from "./paths-server.ts";
import { type Answer, legacy, modern, overFetch, overSocket, type Raw } from "./raw-requests.ts";

let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = pathsServer();
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

describe.each([
  ["modern", { ...both(modern), ...onlyModern }],
  ["legacy", { ...both(legacy), ...onlyLegacy }],
] as const)("fetch and listen agree on the %s era about", (_era, cases) => {
  it.each(Object.entries(cases))("%s", async (_name, raw) => {
    const expected = comparable(await overFetch(server, raw));
    const given = comparable(await overSocket(url, raw));
    expect(given).toEqual(expected);
    // a message in a batch may be answered in any order, everything else has one shape
    expect((given as Answer).status).toBeLessThan(500);
  });
});

describe("the fast path", () => {
  it("answers with one JSON body and its length", async () => {
    for (const raw of [
      modern("tools/call", call("count")),
      legacy("tools/call", call("count")),
      modern("tools/list"),
    ]) {
      const { headers, text } = await overSocket(url, raw);
      expect(headers["content-type"]).toBe("application/json");
      expect(Number(headers["content-length"])).toBe(Buffer.byteLength(text));
    }
  });
  it("opens a stream only for what comes before the result", async () => {
    const { headers, messages } = await overSocket(url, onlyModern.progress as Raw);
    expect(headers).toMatchObject({ "content-type": "text/event-stream", "x-accel-buffering": "no" });
    expect(messages.map((message) => (message as { method?: string }).method)).toEqual([
      "notifications/progress",
      "notifications/progress",
      "notifications/progress",
      undefined,
    ]);
  });
  it("lists what was added after the first list", async () => {
    const names = async (): Promise<string[]> => {
      const { messages } = await overSocket(url, modern("tools/list"));
      return (messages as [{ result: { tools: { name: string }[] } }])[0].result.tools.map((tool) => tool.name);
    };
    expect(await names()).not.toContain("late");
    server.tool("late", {}, () => 1);
    expect(await names()).toContain("late");
  });
});
