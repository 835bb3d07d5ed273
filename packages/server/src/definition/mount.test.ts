import { describe, expect, it } from "vitest";
import { z } from "zod";
import { alice, ask, call, listed, root, said } from "../../test/ask.ts";
import { createServer, defineTool, type Middleware, type TenonServer } from "../index.ts";

const quiet = { version: "1", logSink: () => undefined } as const;
const shop = (closed: string[] = []): TenonServer<{ db: string }> =>
  createServer({
    name: "shop",
    ...quiet,
    lifespan: async () => ({ value: { db: "shop db" }, close: () => void closed.push("shop") }),
  })
    .tool("refund", { input: z.object({ id: z.string() }) }, ({ id }, ctx) => `${id} in ${ctx.lifespan.db}`)
    .resource("order://{id}/detail", {}, ({ id }, ctx) => `${id} in ${ctx.lifespan.db}`)
    .resource("company://policy", {}, () => "policy")
    .resource("urn:shop", {}, () => "urn")
    .prompt("reply", { input: z.object({ id: z.string() }) }, ({ id }) => `About ${id}`);
const house = (): TenonServer => createServer({ name: "house", ...quiet }).tool("own", {}, () => "own");

describe.each(["modern", "legacy"] as const)("a mounted server (%s)", (era) => {
  it("offers its definitions under the prefix", async () => {
    const server = house().mount("a", shop());
    expect(await listed(server, "tools", { era })).toEqual(["a_refund", "own"]);
    expect(await listed(server, "prompts", { era })).toEqual(["a_reply"]);
    expect(await listed(server, "resources", { era })).toEqual(["company://a/policy", "urn:a/shop"]);
    expect(await listed(server, "resourceTemplates", { era })).toEqual(["order://a/{id}/detail"]);
  });
  it("answers there, with its own lifespan", async () => {
    const server = house().mount("a", shop());
    expect(said(await call(server, "a_refund", { id: "7" }, { era }))).toBe("7 in shop db");
    expect(
      (await ask(server, "prompts/get", { name: "a_reply", arguments: { id: "7" } }, { era })).result?.messages,
    ).toMatchObject([{ content: { text: "About 7" } }]);
    for (const [uri, text] of [
      ["order://a/7/detail", "7 in shop db"],
      ["company://a/policy", "policy"],
      ["urn:a/shop", "urn"],
    ] as const) {
      expect((await ask(server, "resources/read", { uri }, { era })).result?.contents).toMatchObject([{ uri, text }]);
    }
    expect((await ask(server, "resources/read", { uri: "order://7/detail" }, { era })).error?.code).toBe(-32602);
    expect((await call(server, "refund", { id: "7" }, { era })).error?.message).toContain('Unknown tool "refund"');
    expect(said(await call(server, "a_refund", {}, { era }))).toMatch(/^Invalid arguments for a_refund: id: /);
  });
  it("may be mounted in a mounted one, and twice", async () => {
    const server = house()
      .mount("b", createServer({ name: "mall", ...quiet }).mount("a", shop()))
      .mount("c", shop());
    expect(await listed(server, "tools", { era })).toEqual(["b_a_refund", "c_refund", "own"]);
    expect(said(await call(server, "b_a_refund", { id: "7" }, { era }))).toBe("7 in shop db");
    const uri = "order://b/a/7/detail";
    expect((await ask(server, "resources/read", { uri }, { era })).result?.contents).toMatchObject([
      { uri, text: "7 in shop db" },
    ]);
  });
});

describe("mounting", () => {
  it("keeps the other server's middleware around its own definitions only, under its own names", async () => {
    const seen: string[] = [];
    const note =
      (who: string): Middleware =>
      (request, next) => {
        seen.push(`${who} ${request.name ?? request.method}`);
        return next();
      };
    const server = house()
      .use(note("house"))
      .mount("a", shop().use(note("shop")));
    await call(server, "a_refund", { id: "7" });
    await call(server, "own");
    await ask(server, "resources/read", { uri: "company://a/policy" });
    await ask(server, "tools/list");
    expect(seen).toEqual([
      "house a_refund",
      "shop refund",
      "house own",
      "house company://a/policy",
      "shop company://policy",
      "house tools/list",
    ]);
  });
  it("keeps its visibility and its argument rules", async () => {
    const other = createServer({
      name: "o",
      ...quiet,
      unknownArguments: "reject",
      visibleTags: (caller) => (caller?.claims.role === "admin" ? ["admin"] : []),
    })
      .tool("purge", { tags: ["admin"] }, () => "purged")
      .tool("t", { scopes: ["orders:refund"], input: z.object({ id: z.string() }) }, () => "t");
    const server = house().mount("o", other);
    expect(await listed(server, "tools", { caller: root })).toEqual(["o_purge", "o_t", "own"]);
    expect(await listed(server, "tools", { caller: alice })).toEqual(["own"]);
    expect((await call(server, "o_purge", {}, { caller: alice })).error?.message).toBe('Unknown tool "o_purge"');
    expect((await call(server, "o_t", {}, { caller: alice })).error?.data).toMatchObject({
      reason: "insufficient_scope",
    });
    expect(said(await call(server, "o_t", { id: "1", x: 1 }, { caller: root }))).toContain("x: unknown argument");
  });
  it("asks questions through the server that is asked, bound to the outer name", async () => {
    const other = createServer({ name: "o", ...quiet }).tool(
      "sure",
      {},
      async (_, ctx) => (await ctx.elicit("Sure?", ["yes"])).action,
    );
    const server = house().mount("a", other).mount("b", other);
    const { inputRequests, requestState } = (await call(server, "a_sure")).result as {
      inputRequests: object;
      requestState: string;
    };
    const inputResponses = Object.fromEntries(
      Object.keys(inputRequests).map((key) => [key, { action: "accept", content: { value: "yes" } }]),
    );
    const answer = { arguments: {}, requestState, inputResponses };
    const other_ = await ask(server, "tools/call", { name: "b_sure", ...answer });
    expect(other_.error ?? other_.result).not.toMatchObject({ content: [{ text: "accept" }] });
    expect(said(await ask(server, "tools/call", { name: "a_sure", ...answer }))).toBe("accept");
  });
  it("follows what changes there", async () => {
    const other = shop();
    const server = house().mount("a", other);
    const changes: unknown[] = [];
    server.onChange((change) => changes.push(change));
    other.tool("late", {}, () => "late");
    other.replace(defineTool("refund", {}, () => "replaced"));
    other.remove("resource", "company://policy");
    expect(await listed(server, "tools")).toEqual(["a_late", "a_refund", "own"]);
    expect(said(await call(server, "a_refund"))).toBe("replaced");
    expect(await listed(server, "resources")).toEqual(["urn:a/shop"]);
    expect(changes).toEqual([
      { kind: "tool", name: "a_late", what: "added" },
      { kind: "tool", name: "a_refund", what: "replaced" },
      { kind: "resource", name: "company://a/policy", what: "removed" },
    ]);
  });
  it("refuses a name that exists, and then mounts nothing (D1)", async () => {
    const server = house().tool("a_refund", {}, () => "mine");
    expect(() => server.mount("a", shop())).toThrow('Tool "a_refund" is defined twice');
    expect(await listed(server, "tools")).toEqual(["a_refund", "own"]);
    expect(await listed(server, "resources")).toEqual([]);
    const twice = house().mount("a", shop());
    expect(() => twice.mount("a", shop())).toThrow(/defined twice/);
  });
  it("refuses itself, a bad prefix, a name that grows too long, and what is no server", () => {
    const server = house();
    expect(() => server.mount("a", server)).toThrow("a server cannot be mounted in itself");
    const inner = createServer({ name: "inner", ...quiet }).mount("x", server);
    expect(() => server.mount("a", inner)).toThrow("a server cannot be mounted in itself");
    expect(() => server.mount("a/b", shop())).toThrow(/the prefix "a\/b" is not allowed/);
    const long = createServer({ name: "long", ...quiet }).tool("x".repeat(128), {}, () => 1);
    expect(() => server.mount("a", long)).toThrow(/is not allowed: use 1 to 128/);
    expect(() => server.mount("a", { name: "fake", close: async () => undefined })).toThrow(
      /expected a server made by createServer/,
    );
  });
  it("closes the other server's lifespan with this one", async () => {
    const closed: string[] = [];
    const server = house().mount("a", shop(closed));
    await call(server, "a_refund", { id: "7" });
    await server.close();
    expect(closed).toEqual(["shop"]);
  });
});
