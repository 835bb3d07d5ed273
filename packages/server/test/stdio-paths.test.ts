import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import { program } from "../../../test/programs.ts";
import type { TenonServer } from "../src/index.ts";
import { both, comparable, onlyModern } from "./paths-cases.ts";
import { pathsServer } from "./paths-server.ts";
import { META, modern, overFetch, type Raw } from "./raw-requests.ts";

type Message = { id?: unknown; method?: string; result?: Record<string, unknown>; error?: { code: number } };

const entry = await program("./paths-stdio.ts", import.meta.url);

/** A server on stdio whose lines are read one by one. */
class Child {
  readonly process: ChildProcess;
  readonly #heard: Message[] = [];
  #wake: (() => void) | undefined;

  constructor() {
    this.process = spawn(process.execPath, [entry], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    createInterface({ input: this.process.stdout as NodeJS.ReadableStream }).on("line", (line) => {
      this.#heard.push(JSON.parse(line));
      this.#wake?.();
    });
  }

  write(text: string | Buffer): void {
    this.process.stdin?.write(text);
  }

  has(id: unknown): boolean {
    return this.#heard.some((message) => message.id === id);
  }

  /** Every message up to and with the answer to `id`, without answers to others: they may overtake each other. */
  async until(id: unknown): Promise<Message[]> {
    for (;;) {
      const end = this.#heard.findIndex((message) => message.id === id);
      if (end !== -1) {
        const heard = this.#heard.splice(0, end + 1);
        this.#heard.unshift(...heard.filter((message) => message.id !== undefined && message.id !== id));
        return heard.filter((message) => message.id === undefined || message.id === id);
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}

let server: TenonServer;
let child: Child;
beforeAll(() => {
  server = pathsServer();
  child = new Child();
});
beforeEach(() => expect(child.process.exitCode).toBeNull());
afterAll(async () => {
  child.process.kill();
  await server.close();
});

const line = (raw: Raw): string => `${raw.body?.toString()}\n`;
const withId = (id: number, method: string, params: Record<string, unknown>, meta = {}): string =>
  line(modern(method, params, { message: { id }, meta }));

/** Cases whose point is a header: there is none on stdio. */
const cases = Object.entries({ ...both(modern), ...onlyModern }).filter(
  ([name]) => !/header|origin|host|body|base64|trace|repeated|session|accept|id$/.test(name),
);

describe("stdio and fetch agree about", () => {
  it.each(cases)("%s", async (_name, raw) => {
    const expected = await overFetch(server, raw);
    const [answer] = expected.messages as Message[];
    // refusals of malformed messages are worded by each transport; what is well-formed is answered the same
    const refused = expected.status !== 200 && answer?.error?.code !== -32021;
    if (refused || answer?.id === null || expected.messages.length === 0) return;
    child.write(line(raw));
    const messages = await child.until((expected.messages.at(-1) as Message).id);
    expect(comparable({ ...expected, messages })).toEqual(comparable(expected));
  });
});

describe("on stdio", () => {
  it("a line that comes in pieces, several lines at once and Windows line ends are read", async () => {
    const text = withId(11, "tools/call", { name: "count" }).replace("\n", "\r\n");
    for (const part of [text.slice(0, 10), text.slice(10, 40)]) {
      child.write(part);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    child.write(text.slice(40) + withId(12, "tools/list", {}));
    expect((await child.until(11)).at(-1)?.result).toBeDefined();
    expect((await child.until(12)).at(-1)?.result).toBeDefined();
  });
  it("characters are not broken where a chunk ends inside one", async () => {
    const bytes = Buffer.from(withId(13, "tools/call", { name: "trace" }, { note: "订单" }));
    const middle = bytes.indexOf("订") + 1;
    child.write(bytes.subarray(0, middle));
    await new Promise((resolve) => setTimeout(resolve, 50));
    child.write(bytes.subarray(middle));
    expect(JSON.stringify((await child.until(13)).at(-1))).toContain("订单");
  });
  it("a line of two megabytes is answered", async () => {
    const region = "x".repeat(2 * 1024 * 1024);
    child.write(withId(14, "tools/call", { name: "regional", arguments: { region } }));
    const answer = (await child.until(14)).at(-1);
    expect(JSON.stringify(answer)).toContain("xxxx");
  });
  it("a line too long to be read is refused to who sent it, and the next ones are answered", async () => {
    const text = "x".repeat(11 * 1024 * 1024);
    const params = { name: "count", arguments: { text, id: 5 } };
    const [first, last] = [31, "thirty-two"];
    child.write(`${JSON.stringify({ jsonrpc: "2.0", id: first, method: "tools/call", params })}\n`);
    child.write(`${JSON.stringify({ method: "tools/call", params, jsonrpc: "2.0", id: last })}\n`);
    // an answer and a notification are refused to nobody
    child.write(`${JSON.stringify({ jsonrpc: "2.0", id: 34, result: { text } })}\n`);
    child.write(`${JSON.stringify({ jsonrpc: "2.0", method: "notifications/x", params })}\n`);
    child.write(withId(33, "tools/call", { name: "count" }));
    for (const id of [first, last]) {
      expect((await child.until(id)).at(-1)?.error).toMatchObject({
        code: -32600,
        message: expect.stringContaining("larger than 10485760 bytes"),
      });
    }
    expect((await child.until(33)).at(-1)?.result).toBeDefined();
    expect(child.has(34)).toBe(false);
  });
  it("garbage between two requests costs neither", async () => {
    child.write(`${withId(15, "tools/call", { name: "count" })}{"jsonrpc":\n\u0000\n[1]\n`);
    child.write(withId(16, "tools/call", { name: "count" }));
    expect((await child.until(15)).at(-1)?.result).toBeDefined();
    expect((await child.until(16)).at(-1)?.result).toBeDefined();
  });
  it("a cancelled call is not answered, and its id is free again", async () => {
    child.write(withId(17, "tools/call", { name: "wait" }));
    child.write('{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":17}}\n');
    // it ends by its signal and returns a value: that one must not come out
    child.write(withId(18, "tools/call", { name: "count" }));
    await child.until(18);
    expect(child.has(17)).toBe(false);
    child.write(withId(17, "tools/list", {}));
    expect((await child.until(17)).at(-1)?.result?.tools).toBeDefined();
  });
  it("a log message comes only at the level that was asked for", async () => {
    const slow = { name: "slow", arguments: { steps: 2 } };
    child.write(withId(19, "tools/call", slow) + withId(20, "tools/call", slow, { [META.level]: "debug" }));
    const heard = [...(await child.until(19)), ...(await child.until(20))];
    expect(heard.filter(({ method }) => method === "notifications/message").length).toBeGreaterThan(0);
  });
  it("an older client may still say initialize after modern requests", async () => {
    const other = new Child();
    onTestFinished(() => void other.process.kill());
    other.write(withId(20, "tools/call", { name: "count" }));
    expect((await other.until(20)).at(-1)?.result).toBeDefined();
    const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "old", version: "1" } };
    other.write(`${JSON.stringify({ jsonrpc: "2.0", id: 21, method: "initialize", params })}\n`);
    expect((await other.until(21)).at(-1)?.result?.protocolVersion).toBe("2025-11-25");
    other.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    other.write('{"jsonrpc":"2.0","id":22,"method":"tools/list"}\n');
    expect((await other.until(22)).at(-1)?.result?.tools).toBeDefined();
  });
});
