import { fileURLToPath } from "node:url";
import type { Client } from "@modelcontextprotocol/client";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jwt } from "../src/auth/index.ts";
import { app, showsApps } from "../src/extension/apps.ts";
import { skills } from "../src/extension/skills.ts";
import { createServer, type TenonServer } from "../src/index.ts";
import { authorize } from "../src/middleware/index.ts";
import { connect as inMemory } from "../src/testing/index.ts";
import { audited, connections } from "./extension-server.ts";
import { initialize, legacy, modern, overFetch, overSocket, type Raw, sessionOf } from "./raw-requests.ts";
import { connect, type Mode } from "./servers.ts";
import { spawn } from "./spawned.ts";
import { accepts, bearer, createSigner, sign } from "./tokens.ts";

const stdioServer = fileURLToPath(new URL("./extension-server.ts", import.meta.url));

let server: TenonServer;
let url: string;
beforeAll(async () => {
  server = audited();
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

const result = z.looseObject({});
const ask = (client: Client, method: string, params: Record<string, unknown> = {}): Promise<Record<string, unknown>> =>
  client.request({ method, params } as never, result as never) as Promise<Record<string, unknown>>;

describe.each(["modern", "legacy"] as const)("an extension on the %s era", (mode: Mode) => {
  describe.each(["http", "stdio"] as const)("over %s", (transport) => {
    let client: Client;
    const capabilities = { extensions: { "com.example/audit": { level: 2 } } };
    beforeAll(async () => {
      client =
        transport === "http"
          ? await connect(url, mode, { capabilities })
          : await spawn(stdioServer, mode, { capabilities });
    });
    afterAll(() => client.close());

    it("is advertised with its settings", () => {
      expect(client.getServerCapabilities()?.extensions).toMatchObject({ "com.example/audit": { retentionDays: 30 } });
    });
    it("answers its methods and knows what the client declared", async () => {
      expect(await ask(client, "audit/list", { since: 3 })).toMatchObject({
        since: 3,
        era: mode,
        declared: { level: 2 },
      });
    });
    it("checks parameters before the handler sees them", async () => {
      await expect(ask(client, "audit/list", { since: "x" })).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining("since"),
      });
    });
    it("lets a ToolError through and masks everything else", async () => {
      await expect(ask(client, "audit/refuse")).rejects.toMatchObject({
        code: -32602,
        message: expect.stringContaining("There is no entry 7"),
        data: { id: 7, code: "tool_error" },
      });
      await expect(ask(client, "audit/leak")).rejects.toMatchObject({
        code: -32603,
        message: expect.not.stringContaining("hunter2"),
      });
    });
    it("has a method only on its eras", async () => {
      const call = ask(client, "audit/modern");
      if (mode === "modern") expect(await call).toMatchObject({ ok: true });
      else await expect(call).rejects.toMatchObject({ code: -32601 });
    });
    it("says what a client must declare", async () => {
      await expect(ask(client, "strict/do")).rejects.toMatchObject({
        code: -32021,
        data: { requiredCapabilities: { extensions: { "com.example/strict": {} } } },
      });
    });
  });
});

describe("an extension", () => {
  it("hears of a legacy session once, with what the client declared", async () => {
    connections.length = 0;
    const client = await inMemory(server, {
      era: "legacy",
      capabilities: { extensions: { "com.example/audit": { level: 1 } } },
    });
    await expect.poll(() => connections.length).toBe(1);
    expect(connections[0]).toMatchObject({ era: "legacy", declared: { level: 1 }, client: { name: "tenon-test" } });
    await client.close();
  });
  it("stands inside the server's middleware: who may not ask may not ask this way either", async () => {
    const guarded = audited().use(authorize(({ method }) => !method.startsWith("audit/")));
    const { url: at } = await guarded.listen({ port: 0 });
    for (const mode of ["modern", "legacy"] as const) {
      const client = await connect(at, mode);
      await expect(ask(client, "audit/list", { since: 3 })).rejects.toMatchObject({
        message: expect.stringContaining("Not allowed: audit/list"),
      });
      await client.close();
    }
    await guarded.close();
  });
  it("is refused with a taken id or method, a method of the protocol, a malformed id, or an unknown option", () => {
    const taken = audited();
    expect(() => taken.extension({ id: "com.example/audit" })).toThrow("is added twice");
    expect(() =>
      taken.extension({ id: "com.example/other", methods: { "audit/list": { handler: () => undefined } } }),
    ).toThrow("belongs to com.example/audit already");
    for (const method of ["tools/call", "notifications/x", "server/discover", "plain"]) {
      expect(() =>
        taken.extension({ id: "com.example/other", methods: { [method]: { handler: () => undefined } } }),
      ).toThrow("cannot be a method of an extension");
    }
    const stray = { "other/do": { eras: ["legacy"] as const, handler: () => undefined } };
    expect(() => taken.extension({ id: "com.example/other", eras: ["modern"], methods: stray })).toThrow("not offered");
    expect(() => taken.extension({ id: "audit" })).toThrow("reverse-DNS");
    expect(() => taken.extension({ id: "com.example/other", setings: {} } as never)).toThrow(
      'did you mean "settings"?',
    );
  });
});

describe.each(["modern", "legacy"] as const)("skills on the %s era", (era) => {
  const folder = new URL("./skills", import.meta.url);
  it("are listed, got, read as resources and listed by directory", async () => {
    const served = (await skills(folder)).addTo(createServer({ name: "skilled", version: "1.0.0" }));
    await using client = await inMemory(served, { era });
    expect(client.server.capabilities.extensions).toEqual({
      "io.modelcontextprotocol/skills": { directoryRead: true },
    });
    const listed = await client.request("skills/list");
    expect(listed.skills).toMatchObject([{ uri: "skill://orders/SKILL.md", frontmatter: { name: "orders" } }]);
    expect("ttlMs" in listed).toBe(era === "modern");
    expect(await client.request("skills/get", { uri: "skill://orders/SKILL.md" })).toMatchObject({
      skill: {
        resources: expect.arrayContaining([expect.objectContaining({ digest: expect.stringMatching(/^sha256:/) })]),
      },
    });
    const [rules] = await client.readResource("skill://orders/references/RULES.md");
    expect(rules).toMatchObject({ text: "Delivered orders only.\n", mimeType: "text/markdown" });
    const directory = await client.request("resources/directory/read", { uri: "skill://orders" });
    expect((directory.resources as { uri: string }[]).map((entry) => entry.uri).sort()).toEqual([
      "skill://orders/SKILL.md",
      "skill://orders/references",
    ]);
    expect((await client.listResources()).map((entry) => entry.uri)).toEqual(["skill://orders/SKILL.md"]);
    await expect(client.readResource("skill://orders/none.md")).rejects.toMatchObject({ code: "rpc_error" });
    await expect(client.request("skills/get", { uri: "skill://none/SKILL.md" })).rejects.toMatchObject({
      data: { code: -32602 },
    });
  });
  it("may come from a source that knows the caller", async () => {
    const entry = (await skills(folder)).entries[0];
    const source = {
      list: async () => ({ skills: entry ? [entry] : [] }),
      get: async () => entry,
      read: async (_uri: string, exchange: { caller?: { subject: string } | undefined }) => ({
        text: `for ${exchange.caller?.subject}`,
      }),
    };
    const served = (await skills(source)).addTo(createServer({ name: "skilled", version: "1.0.0" }));
    await using client = await inMemory(served, { era, caller: { subject: "zhangsan", scopes: [], claims: {} } });
    expect(await client.readResource("skill://orders/SKILL.md")).toMatchObject([{ text: "for zhangsan" }]);
  });
});

describe.each(["modern", "legacy"] as const)("a view on the %s era", (era) => {
  it("is a resource with its limits, named by the tools that belong to it", async () => {
    const served = createServer({ name: "budgets", version: "1.0.0" });
    app(served, {
      uri: "ui://budget/view",
      html: "<!doctype html><title>Budget</title>",
      csp: { connectDomains: ["https://api.example.com"] },
      permissions: { clipboardWrite: {} },
    })
      .tool("show_budget", {}, (_, ctx) => (showsApps(ctx.client) ? "shown" : "180 of 500"))
      .tool("set_budget", { input: z.object({ amount: z.int() }), visibility: ["app"] }, ({ amount }) => amount);
    app(served, { uri: "ui://budget/other", html: () => "other" });
    const ui = { csp: { connectDomains: ["https://api.example.com"] }, permissions: { clipboardWrite: {} } };
    const mimeType = "text/html;profile=mcp-app";

    await using plain = await inMemory(served, { era });
    expect(plain.server.capabilities.extensions).toEqual({ "io.modelcontextprotocol/ui": {} });
    expect((await plain.listResources())[0]).toMatchObject({ uri: "ui://budget/view", mimeType, _meta: { ui } });
    expect(await plain.readResource("ui://budget/view")).toMatchObject([{ mimeType, _meta: { ui } }]);
    expect((await plain.listTools()).map((tool) => tool._meta)).toEqual([
      { ui: { resourceUri: "ui://budget/view", visibility: ["app"] }, "ui/resourceUri": "ui://budget/view" },
      { ui: { resourceUri: "ui://budget/view" }, "ui/resourceUri": "ui://budget/view" },
    ]);
    expect((await plain.callTool("show_budget")).text).toBe("180 of 500");

    const capabilities = { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [mimeType] } } };
    await using host = await inMemory(served, { era, capabilities });
    expect((await host.callTool("show_budget")).text).toBe("shown");
  });
  it("needs a ui:// address", () => {
    const served = createServer({ name: "x", version: "1.0.0" });
    expect(() => app(served, { uri: "https://x", html: "" })).toThrow("begins with ui://");
  });
});

describe("a method of an extension that needs scopes", () => {
  it("is refused with a challenge where they are lacking, on both revisions, and does not exist where it is hidden", async () => {
    const signer = await createSigner("k1");
    let purged = 0;
    await using server = createServer({
      name: "s",
      version: "1",
      logSink: () => undefined,
      auth: jwt(accepts(signer)),
    });
    server.extension({
      id: "com.example/audit",
      methods: {
        "audit/purge": {
          scopes: ["audit:purge"],
          handler: () => {
            purged += 1;
            return { purged };
          },
        },
        "audit/root": { visible: (caller) => caller?.subject === "root", handler: () => ({ secret: 1 }) },
      },
    });
    const { url } = await server.listen({ port: 0 });
    const token = async (subject: string, scope: string) => bearer(await sign(signer, subject, scope));
    for (const send of [(raw: Raw) => overSocket(url, raw), (raw: Raw) => overFetch(server, raw)]) {
      const opened = initialize();
      const narrow = await token("u", "other");
      const session = sessionOf(await send({ ...opened, headers: { ...opened.headers, ...narrow } }));
      const asks = [
        (method: string, auth: object) => modern(method, {}, { headers: { ...auth } }),
        (method: string, auth: object) => legacy(method, {}, { headers: { ...session, ...auth } }),
      ];
      for (const ask of asks) {
        const before = purged;
        const refused = await send(ask("audit/purge", narrow));
        expect(refused.status).toBe(403);
        expect(refused.headers["www-authenticate"]).toMatch(/insufficient_scope.*scope="audit:purge"/);
        expect(purged).toBe(before);
        const wide = await send(ask("audit/purge", await token("u", "audit:*")));
        expect(wide.messages.at(-1)).toMatchObject({ result: { purged: before + 1 } });
        expect((await send(ask("audit/root", narrow))).messages.at(-1)).toMatchObject({ error: { code: -32601 } });
      }
      const root = await send(modern("audit/root", {}, { headers: await token("root", "") }));
      expect(root.messages.at(-1)).toMatchObject({ result: { secret: 1 } });
    }
  });
  it("has them checked when it is made, and leaves nothing behind when they are none", () => {
    const server = createServer({ name: "s", version: "1" });
    const add = (scopes: string[]) => () =>
      server.extension({ id: "com.example/audit", methods: { "audit/list": { scopes, handler: () => ({}) } } });
    expect(add(["two words"])).toThrow(/com.example\/audit.*audit\/list.*is no scope/);
    expect(add(["audit:read"])).not.toThrow();
  });
});
