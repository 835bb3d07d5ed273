import { describe, expect, it, onTestFinished } from "vitest";
import { legacy, modern } from "../test/servers.ts";
import { type CallDriver, type ClientOptions, createClient, type EventSource, renderText } from "./index.ts";

async function open(make: typeof modern, options: Omit<ClientOptions, "servers">) {
  const server = await make();
  const client = createClient({ servers: { s: { url: server.url } }, ...options });
  onTestFinished(async () => {
    await client.close();
    await server.kill();
  });
  return client;
}

describe.each([
  ["modern", modern],
  ["legacy", legacy],
] as const)("onElicitation with a %s server", (_, make) => {
  it("is told of a question and the call it belongs to; the handler answers", async () => {
    const told: [unknown, EventSource][] = [];
    const client = await open(make, {
      events: { onElicitation: (request, source) => told.push([request, source]) },
      elicitation: () => ({ action: "accept", content: { ok: true } }),
    });
    expect(renderText((await client.callTool("s", "ask")).content)).toBe("accept:true");
    expect(told).toEqual([
      [
        expect.objectContaining({ mode: "form", message: "Sure?", fields: [expect.objectContaining({ name: "ok" })] }),
        { server: "s", tool: "ask", callId: expect.stringMatching(/^call-\w+-1$/) },
      ],
    ]);
  });

  it("does no harm when it throws, or is async and fails", async () => {
    const errors: unknown[] = [];
    let times = 0;
    const client = await open(make, {
      events: {
        onElicitation: () => {
          if (times++ === 0) throw new Error("first");
          return Promise.reject(new Error("second")) as never;
        },
        onHandlerError: (error) => errors.push(String(error)),
      },
      elicitation: () => ({ action: "accept", content: { ok: true } }),
    });
    for (let i = 0; i < 2; i++) expect(renderText((await client.callTool("s", "ask")).content)).toBe("accept:true");
    await new Promise((resolve) => setImmediate(resolve));
    expect(errors).toEqual(["Error: first", "Error: second"]);
  });
});

describe("onElicitation", () => {
  it("is told as well where a driver answers", async () => {
    const told: string[] = [];
    const client = await open(modern, {
      events: { onElicitation: ({ message }) => told.push(message) },
      elicitation: "interrupt",
    });
    const driver: CallDriver = {
      leg: (send) => send(),
      answer: async () => ({ confirm: { action: "decline" } }),
    };
    expect(renderText((await client.callTool("s", "ask", {}, { driver })).content)).toBe("decline:undefined");
    expect(told).toEqual(["Sure?"]);
  });
});

describe("handlers nobody knows", () => {
  it.each([
    [{ events: { onElicitaiton: () => {} } }, 'did you mean "onElicitation"'],
    [{ events: { onprogress: () => {} } }, 'did you mean "onProgress"'],
    [{ onLog: () => {} }, /has no option "onLog"/],
    [{ elicitaiton: () => {} }, 'did you mean "elicitation"'],
    [{ events: { onLog: "stderr" } }, "onLog must be a function"],
  ])("are errors: %o", (options, message) => {
    expect(() => createClient({ servers: {}, ...(options as object) })).toThrow(message);
  });
});
