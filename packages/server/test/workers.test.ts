import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, describe, expect, it, onTestFinished } from "vitest";
import { z } from "zod";
import { createServer, type LogEntry } from "../src/index.ts";
import { alice, call, said } from "./ask.ts";
import { connect } from "./servers.ts";

const logged: LogEntry[] = [];
const server = createServer({
  name: "test",
  version: "1",
  logSink: (entry) => logged.push(entry),
  workers: { maxThreads: 2, cancelGraceMs: 200 },
})
  .tool("heavy", {
    input: z.object({ do: z.string(), ms: z.number().optional(), file: z.string().optional() }),
    worker: new URL("./workers/heavy.ts", import.meta.url),
  })
  .tool("plain", { input: z.object({ n: z.number() }), worker: new URL("./workers/plain.mjs", import.meta.url) })
  .tool("empty", { worker: new URL("./workers/empty.mjs", import.meta.url) })
  .tool("light", {}, () => "light");
afterAll(() => server.close());

const heavy = (what: string, ms?: number, options: Parameters<typeof call>[3] = {}) =>
  call(server, "heavy", { do: what, ...(ms !== undefined && { ms }) }, options);

describe("a tool with a worker", () => {
  it("runs a module's default export, JavaScript or TypeScript", async () => {
    expect(said(await call(server, "plain", { n: 4 }))).toBe("8");
    expect(said(await heavy("hello"))).toBe("hello");
  });
  it("blocks nobody else", async () => {
    const folder = mkdtempSync(join(tmpdir(), "tenon-worker-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const file = join(folder, "enough");
    let over = false;
    const blocked = call(server, "heavy", { do: "block until", file }, { caller: alice }).finally(() => {
      over = true;
    });
    await expect.poll(() => existsSync(`${file}.began`), { timeout: 20_000 }).toBe(true);
    for (let i = 0; i < 10; i++) expect(said(await call(server, "light"))).toBe("light");
    expect(over).toBe(false);
    writeFileSync(file, "");
    expect((await blocked).result?.structuredContent).toMatchObject({ threadId: expect.any(Number), caller: "alice" });
  });
  it("checks arguments before the thread sees them", async () => {
    expect(said(await call(server, "heavy", { do: 1 }))).toMatch(/^Invalid arguments for heavy: do: /);
  });
  it("returns content helpers and what can be copied", async () => {
    expect((await heavy("picture")).result?.content).toEqual([{ type: "image", data: "AQI=", mimeType: "image/png" }]);
    expect((await heavy("function")).result?.structuredContent).toEqual({ n: 1 });
    expect((await heavy("map")).result?.structuredContent).toEqual({ at: "1970-01-01T00:00:00.000Z" });
  });
  it("lets a ToolError through and masks everything else, as everywhere", async () => {
    expect((await heavy("refuse")).result).toMatchObject({
      isError: true,
      content: [{ text: "Not in here" }],
      structuredContent: { why: "test" },
    });
    for (const [what, cause] of [
      ["leak", "password=[redacted]"],
      ["nan", "result of tool heavy.list[0] is NaN"],
    ] as const) {
      const reply = await heavy(what);
      expect(said(reply)).toMatch(/^Tool heavy failed \(reference \w{6}\)$/);
      expect(logged.at(-1)).toMatchObject({ level: "error", error: { message: expect.stringContaining(cause) } });
    }
    expect(JSON.stringify(logged)).toContain("heavy.ts");
    expect(said(await call(server, "empty"))).toMatch(/^Tool empty failed/);
    expect(logged.at(-1)).toMatchObject({
      error: { message: expect.stringContaining("no function as its default export") },
    });
  });
  it("survives a thread that ends itself", async () => {
    expect(said(await heavy("exit"))).toMatch(/^Tool heavy failed/);
    expect(said(await heavy("still here"))).toBe("still here");
  });
  it.each(["modern", "legacy"] as const)("reports progress and log (%s)", async (era) => {
    const { url, close } = await server.listen({ port: 0 });
    const client = await connect(url, era);
    const seen: unknown[] = [];
    const result = await client.callTool(
      { name: "heavy", arguments: { do: "report" } },
      { onprogress: (p) => seen.push(`${p.progress}/${p.total} ${p.message}`) },
    );
    expect(result.content).toEqual([{ type: "text", text: "reported" }]);
    expect(seen).toEqual(["1/3 step 1", "2/3 step 2", "3/3 step 3"]);
    expect(logged).toContainEqual(
      expect.objectContaining({ level: "warning", message: "half way", at: 2, of: "heavy" }),
    );
    await client.close();
    await close();
  });
  it("stops when the client gives up: by itself, or with its thread", async () => {
    logged.length = 0;
    for (const [what, ms] of [
      ["until cancelled", 0],
      ["block", 60_000],
    ] as const) {
      const gone = heavy(what, ms, { signal: AbortSignal.timeout(150) }).catch(() => undefined);
      await gone;
    }
    await expect.poll(() => logged.map(({ message }) => message)).toContain("stopped by itself");
    // both threads are free again
    const replies = await Promise.all([heavy("one"), heavy("two"), heavy("three")]);
    expect(replies.map(said)).toEqual(["one", "two", "three"]);
  });
  it("refuses more waiting calls than the queue takes", async () => {
    const small = createServer({
      name: "s",
      version: "1",
      logSink: () => undefined,
      workers: { maxThreads: 1, maxQueue: 1 },
    }).tool("heavy", {
      input: z.object({ do: z.string(), ms: z.number() }),
      worker: new URL("./workers/heavy.ts", import.meta.url),
    });
    const replies = await Promise.all([1, 2, 3, 4].map(() => call(small, "heavy", { do: "block", ms: 300 })));
    expect(
      replies.map(said).filter((text) => text === "The server is busy; try again later").length,
    ).toBeGreaterThanOrEqual(1);
    expect(replies.filter((reply) => !reply.result?.isError).length).toBeGreaterThanOrEqual(1);
    await small.close();
  });
  it("ends with the server, busy or not", async () => {
    const other = createServer({ name: "o", version: "1", logSink: () => undefined }).tool("heavy", {
      input: z.object({ do: z.string(), ms: z.number() }),
      worker: new URL("./workers/heavy.ts", import.meta.url),
    });
    const busy = call(other, "heavy", { do: "block", ms: 60_000 }).catch(() => undefined);
    await sleep(300);
    const started = performance.now();
    await other.close();
    await busy;
    expect(performance.now() - started).toBeLessThan(5_000);
  });
  it("needs a file", () => {
    expect(() => server.tool("web", { worker: new URL("https://example.com/a.js") })).toThrow(
      /^tool web: worker must be a file address/,
    );
  });
});
