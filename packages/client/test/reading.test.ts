import { describe, expect, it } from "vitest";
import type { ClientOptions, ElicitationRequest, EventSource } from "../src/index.ts";
import { closeAfterEach, connect, STUBS, type Stub, type StubBehavior, start, stubHttp } from "./stub/index.ts";

closeAfterEach();
const capabilities = { tools: {}, resources: {}, prompts: {} };
const one = (server: Stub, options: Omit<ClientOptions, "servers"> = {}) => connect({ s: server.config }, options);
const contents = (uri: unknown, text: string) => ({ contents: [{ uri, text }] });
const question = {
  method: "elicitation/create",
  params: {
    mode: "form",
    message: "Which year?",
    requestedSchema: { type: "object", properties: { year: { type: "integer" } }, required: ["year"] },
  },
};

/** Asks for a year, then uses it. */
function asking(then: (year: unknown, params: Record<string, unknown>) => Record<string, unknown>) {
  const handler: NonNullable<StubBehavior["onCall"]> = ({ params }) => {
    const responses = params.inputResponses as { q?: { content?: { year: number } } } | undefined;
    if (!responses) return { resultType: "input_required", inputRequests: { q: question }, requestState: "sealed" };
    expect(params.requestState).toBe("sealed");
    return then(responses.q?.content?.year, params);
  };
  return handler;
}

describe.each(STUBS)("questions of a server over %s", (_, stub) => {
  const asks = () =>
    start(
      stub({
        capabilities,
        on: {
          "prompts/get": asking((year) => ({
            messages: [{ role: "user", content: { type: "text", text: `${year}` } }],
          })),
          "resources/read": asking((year, { uri }) => contents(uri, `${year}`)),
        },
      }),
    );

  it("inside prompts/get and resources/read are answered by the handler", async () => {
    const seen: [ElicitationRequest["message"], EventSource][] = [];
    const client = one(await asks(), {
      elicitation: ({ message }, { signal: _signal, ...source }) => {
        seen.push([message, source]);
        return { action: "accept", content: { year: 2026 } };
      },
    });
    expect(await client.getPrompt("s", "report")).toEqual([{ role: "user", content: { type: "text", text: "2026" } }]);
    const [blob] = await client.readResources("s", ["report://x"]);
    expect(blob?.asString()).toBe("2026");
    expect(seen).toEqual([
      ["Which year?", { server: "s", prompt: "report", callId: expect.stringMatching(/^call-\w+-1$/) }],
      ["Which year?", { server: "s", uri: "report://x", callId: expect.stringMatching(/^call-\w+-2$/) }],
    ]);
  });

  it("make what was read nobody else's: it is asked for again", async () => {
    let asked = 0;
    const server = await asks();
    const client = one(server, {
      elicitation: () => ({ action: "accept", content: { year: 2026 + asked++ } }),
    });
    const read = async () => (await client.readResources("s", ["report://x"]))[0]?.asString();
    expect([await read(), await read()]).toEqual(["2026", "2027"]);
  });

  it("cannot be asked where nobody answers, and the error says what to do", async () => {
    const server = await asks();
    const suspending = one(server, { elicitation: "interrupt" });
    await expect(suspending.getPrompt("s", "report")).rejects.toMatchObject({
      name: "ConfigError",
      code: "no_answerer",
    });
    await expect(suspending.readResources("s", ["report://x"])).rejects.toThrow(
      /resources\/read report:\/\/x.*only a tool call can be suspended; give createClient an elicitation handler/,
    );
    await expect(one(server).getPrompt("s", "report")).rejects.toThrow(/no elicitation handler is set/);
  });

  it("without end are given up, and a caller may stop", async () => {
    const server = await start(
      stub({
        capabilities,
        on: { "prompts/get": () => ({ resultType: "input_required", inputRequests: { q: question } }) },
      }),
    );
    const client = one(server, { elicitation: () => ({ action: "decline" }) });
    await expect(client.getPrompt("s", "p")).rejects.toMatchObject({ code: "too_many_rounds" });
    const patient = one(server, { elicitation: () => new Promise(() => {}) });
    const signal = AbortSignal.timeout(300);
    await expect(patient.getPrompt("s", "p", {}, { signal })).rejects.toMatchObject({ code: "cancelled" });
  });
});

describe("resources", () => {
  it("have templates, listed over all pages; malformed ones are left out", async () => {
    const server = await start(
      stubHttp({
        capabilities,
        on: {
          "resources/templates/list": ({ params }) =>
            params.cursor
              ? { resourceTemplates: [{ uriTemplate: "b://{id}", name: "b", mimeType: "text/plain" }] }
              : { resourceTemplates: [{ uriTemplate: "a://{id}" }, { name: "bad" }], nextCursor: "2" },
        },
      }),
    );
    const client = one(server);
    expect(await client.listResourceTemplates()).toEqual([
      { server: "s", uriTemplate: "a://{id}", name: "a://{id}" },
      { server: "s", uriTemplate: "b://{id}", name: "b", mimeType: "text/plain" },
    ]);
    const none = one(await start(stubHttp()));
    expect(await none.listResourceTemplates()).toEqual([]);
  });

  const reading = (more: object) =>
    start(
      stubHttp({
        capabilities,
        on: {
          "resources/read": ({ params, headers, nth }) => ({
            ...contents(params.uri, `${headers["x-user"] ?? "nobody"} ${nth}`),
            ...more,
          }),
        },
      }),
    );
  const read = async (client: ReturnType<typeof connect>, user?: string) => {
    const options = user === undefined ? {} : { headers: { "X-User": user } };
    const [blob] = await client.readResources("s", ["r://x"], options);
    return blob?.asString();
  };

  it("are kept as long as their server says, a private one for the identity that asked", async () => {
    const client = one(await reading({ ttlMs: 60_000, cacheScope: "private" }));
    expect(await read(client)).toBe("nobody 1");
    expect(await read(client)).toBe("nobody 1");
    expect(await read(client, "ann")).toBe("ann 2");
    expect(await read(client, "bob")).toBe("bob 3");
    expect(await read(client, "ann")).toBe("ann 2");
    const open = one(await reading({ ttlMs: 60_000, cacheScope: "public" }));
    expect(await read(open, "ann")).toBe("ann 1");
    expect(await read(open, "bob")).toBe("ann 1");
  });

  it("are as large as each reading allows, also when they are kept", async () => {
    const client = one(await reading({ ttlMs: 60_000, cacheScope: "public" }));
    expect(await read(client)).toBe("nobody 1");
    const small = client.readResources("s", ["r://x"], { maxResultBytes: 20 });
    await expect(small).rejects.toMatchObject({ code: "too_large", data: { limit: 20 } });
    expect(await read(client)).toBe("nobody 1"); // still kept for whoever takes it
  });

  it("are asked for again when they may not be kept", async () => {
    const fresh = one(await reading({ ttlMs: 0 }));
    expect([await read(fresh), await read(fresh)]).toEqual(["nobody 1", "nobody 2"]);
    const brief = one(await reading({ ttlMs: 150 }));
    expect(await read(brief)).toBe("nobody 1");
    await expect.poll(() => read(brief), { timeout: 10_000 }).toBe("nobody 2");
  });

  it("are not asked for any more once one of many failed", async () => {
    const uris = Array.from({ length: 200 }, (_, index) => `r://${index}`);
    const asked: unknown[] = [];
    const server = await start(
      stubHttp({
        capabilities,
        on: {
          "resources/read": ({ params: { uri } }) => {
            asked.push(uri);
            return uri === "r://0" ? { contents: "none" } : contents(uri, "fine");
          },
        },
      }),
    );
    const client = one(server);
    await expect(client.readResources("s", uris)).rejects.toMatchObject({ code: "bad_answer" });
    // time for the others, had they gone on
    for (let i = 0; i < 40; i++) await client.readResources("s", [`later://${i}`]);
    expect(asked.filter((uri) => uris.some((one) => one === uri)).length).toBeLessThan(100);
  });

  it("that are too large or malformed fail their own reading", async () => {
    const server = await start(
      stubHttp({
        capabilities,
        on: {
          "resources/read": ({ params: { uri } }) => {
            if (uri === "r://large") return contents(uri, "x".repeat(5_000));
            if (uri === "r://odd") return { contents: [{ uri }] };
            return contents(uri, "fine");
          },
        },
      }),
    );
    const client = one(server, { maxResultBytes: 4_000 });
    await expect(client.readResources("s", ["r://large"])).rejects.toMatchObject({ code: "too_large" });
    await expect(client.readResources("s", ["r://odd"])).rejects.toMatchObject({ code: "bad_answer" });
    expect((await client.readResources("s", ["r://x"]))[0]?.asString()).toBe("fine");
    await expect(client.readResources("s", ["r://x"], { header: {} } as never)).rejects.toThrow(
      /did you mean "headers"/,
    );
  });

  it("whose list breaks are left out, and that is reported until it works again", async () => {
    let broken = true;
    const server = await start(
      stubHttp({
        capabilities,
        on: { "resources/list": () => (broken ? { resources: 7 } : { resources: [{ uri: "r://x", name: "x" }] }) },
      }),
    );
    const client = one(server);
    expect(await client.listResources()).toEqual([]);
    expect(client.servers()[0]?.problems).toEqual([
      { tool: "resources/list", reason: expect.stringMatching(/without a list "resources"/) },
    ]);
    broken = false;
    expect(await client.listResources()).toMatchObject([{ uri: "r://x" }]);
    expect(client.servers()[0]?.problems).toEqual([]);
  });

  it("are read a few at a time when there are many", async () => {
    const resources = Array.from({ length: 50 }, (_, i) => ({ uri: `r://${i}`, name: `${i}` }));
    let now = 0;
    let most = 0;
    const server = await start(
      stubHttp({
        capabilities,
        on: {
          "resources/list": () => ({ resources }),
          "resources/read": async ({ params: { uri } }) => {
            most = Math.max(most, ++now);
            await new Promise((resolve) => setTimeout(resolve, 10));
            now--;
            return contents(uri, String(uri));
          },
        },
      }),
    );
    const blobs = await one(server).readResources("s");
    expect(blobs.map((blob) => blob.asString())).toEqual(resources.map(({ uri }) => uri));
    expect(most).toBeLessThanOrEqual(16);
  });
});

describe.each(STUBS)("an answer over %s that does not say what kind it is", (_, stub) => {
  it("is a complete one, for prompts, resources and tools", async () => {
    const unsaid = { resultType: undefined };
    const server = await start(
      stub({
        capabilities,
        on: {
          "prompts/get": () => ({ ...unsaid, messages: [{ role: "user", content: { type: "text", text: "hello" } }] }),
          "resources/read": ({ params }) => ({ ...unsaid, ...contents(params.uri, "text") }),
        },
        onCall: () => ({ ...unsaid, content: [{ type: "text", text: "done" }] }),
      }),
    );
    const client = one(server);
    expect(await client.getPrompt("s", "p")).toEqual([{ role: "user", content: { type: "text", text: "hello" } }]);
    expect((await client.readResources("s", ["a://b"]))[0]?.asString()).toBe("text");
    expect(await client.callTool("s", "t")).toMatchObject({ isError: false, content: [{ text: "done" }] });
  });
});

describe("a prompt", () => {
  it("with content of a kind nobody knows is kept; one without a role fails", async () => {
    const hologram = { type: "hologram", depth: 3 };
    const server = await start(
      stubHttp({
        capabilities,
        on: {
          "prompts/get": ({ params: { name } }) => ({
            messages: [name === "odd" ? { content: hologram } : { role: "user", content: hologram }],
          }),
        },
      }),
    );
    const client = one(server);
    expect(await client.getPrompt("s", "new")).toEqual([{ role: "user", content: hologram }]);
    await expect(client.getPrompt("s", "odd")).rejects.toMatchObject({ code: "bad_answer" });
  });
});
