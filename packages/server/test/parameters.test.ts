import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect as inMemory } from "../src/testing/index.ts";
import { initialize, legacy, modern, overFetch, overSocket, type Raw, sessionOf } from "./raw-requests.ts";
import { type Mode, shop } from "./servers.ts";
import { spawn } from "./spawned.ts";

/** The result, or the error, of one request on one path. */
interface Outcome {
  result?: { content?: { text: string }[]; messages?: { content: { text: string } }[]; isError?: boolean };
  error?: { code: number; message: string };
}
type Send = (method: string, params: Record<string, unknown>) => Promise<Outcome>;

const server = shop();
let url: string;
const closing: (() => Promise<unknown>)[] = [];
beforeAll(async () => {
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(async () => {
  await Promise.allSettled(closing.map((close) => close()));
  await server.close();
});

const only = ({ messages }: { messages: unknown[] }): Outcome => messages.at(-1) as Outcome;
const overBytes =
  (make: typeof legacy, send: (raw: Raw) => Promise<{ messages: unknown[] }>) => async (): Promise<Send> => {
    return async (method, params) => only(await send(make(method, params)));
  };
const overSession = async (): Promise<Send> => {
  const session = sessionOf(await overSocket(url, initialize()));
  return async (method, given) => only(await overSocket(url, legacy(method, given, { headers: session })));
};
/** What a client's request came to, its error as the wire had it. */
async function settled(asked: Promise<unknown>): Promise<Outcome> {
  try {
    return { result: (await asked) as NonNullable<Outcome["result"]> };
  } catch (error) {
    const { code, data, message } = error as { code: unknown; data?: { code: number }; message: string };
    return { error: { code: typeof code === "number" ? code : (data?.code ?? 0), message } };
  }
}
const overStdio = (mode: Mode) => async (): Promise<Send> => {
  const client = await spawn(fileURLToPath(new URL("./stdio-server.ts", import.meta.url)), mode);
  closing.push(() => client.close());
  return (method, params) => settled(client.request({ method, params } as never)); // wrong parameters have no type
};
const within = (era: Mode) => async (): Promise<Send> => {
  const client = await inMemory(server, { era });
  closing.push(() => client.close());
  return (method, params) => settled(client.request(method, params));
};

describe.each<[string, () => Promise<Send>]>([
  ["fetch, modern", overBytes(modern, (raw) => overFetch(server, raw))],
  ["fetch, legacy", overBytes(legacy, (raw) => overFetch(server, raw))],
  ["listen, modern", overBytes(modern, (raw) => overSocket(url, raw))],
  ["listen, legacy", overBytes(legacy, (raw) => overSocket(url, raw))],
  ["a legacy session", overSession],
  ["stdio, modern", overStdio("modern")],
  ["stdio, legacy", overStdio("legacy")],
  ["memory, modern", within("modern")],
  ["memory, legacy", within("legacy")],
])("over %s", (_path, open) => {
  let send: Send;
  beforeAll(async () => {
    send = await open();
  }, 30_000);
  const call = (name: string, args: unknown): Promise<Outcome> => send("tools/call", { name, arguments: args });

  it("arguments that came as one JSON text are read as the object they hold (D4)", async () => {
    const { result } = await call("add", ' {"a":1,"b":2}\n');
    expect(result?.content?.[0]?.text).toBe("3");
  });
  it("such arguments are checked like any others, and lose keys that are prototypes", async () => {
    const wrong = await call("add", '{"a":"x","b":2}');
    expect(wrong.result).toMatchObject({ isError: true, content: [{ text: expect.stringMatching(/for add: a: /) }] });
    const { result } = await call("add", '{"a":1,"b":2,"__proto__":{"a":7}}');
    expect(result?.content?.[0]?.text).toBe("3");
    const deep = await call("add", `{"a":${"[".repeat(150)}${"]".repeat(150)}}`);
    expect(deep.result?.content?.[0]?.text).toContain("deeper than 100 levels");
  });
  it.each(["x", "", "[1]", "{", "7", '"{}"', `{"a":${"[".repeat(300)}${"]".repeat(300)}}`, 7, null, [1], true])(
    "arguments that are %j are refused by saying what was expected",
    async (given) => {
      const { error } = await call("add", given);
      expect(error?.code).toBe(-32602);
      expect(error?.message).toMatch(
        /tools\/call: arguments: expected an object, or text that holds one as JSON, got /,
      );
      expect(error?.message.length).toBeLessThan(250);
    },
  );
  it("a prompt's arguments may come as one text too", async () => {
    const { result } = await send("prompts/get", { name: "reply", arguments: '{"id":"7"}' });
    expect(result?.messages?.[0]?.content.text).toBe("About 7");
  });
  it("other parameters of the wrong kind are refused by saying what was expected", async () => {
    const refused: [string, Record<string, unknown>, string][] = [
      [
        "prompts/get",
        { name: "reply", arguments: { id: 7 } },
        "arguments: expected an object whose values are all text",
      ],
      ["prompts/get", { name: 7 }, "name: expected text, got 7"],
      ["resources/read", { uri: ["a://b"] }, 'uri: expected text, got ["a://b"]'],
      ["tools/list", { cursor: 7 }, "cursor: expected text, got 7"],
      [
        "completion/complete",
        { ref: { type: "ref/prompt" }, argument: {} },
        'ref: expected a "ref/prompt" with a name or',
      ],
    ];
    for (const [method, params, message] of refused) {
      const { error } = await send(method, params);
      expect(error, method).toMatchObject({ code: -32602, message: expect.stringContaining(`${method}: ${message}`) });
    }
  });
});
