import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { jwt } from "../src/auth/index.ts";
import { createServer, type LogEntry, type TenonServer } from "../src/index.ts";
import { answering, type Reply } from "./ask.ts";
import {
  type Answer,
  initialize,
  legacy,
  META,
  modern,
  overFetch,
  overSocket,
  type Raw,
  sessionOf,
} from "./raw-requests.ts";
import { AUDIENCE, accepts, bearer, createSigner, ISSUER, METADATA, type Signer, sign } from "./tokens.ts";

const logged: LogEntry[] = [];
/** Names of headers that a rule about visibility was shown. */
const spied = new Set<string>();
let signer: Signer;
let server: TenonServer;
let url: string;

beforeAll(async () => {
  signer = await createSigner("k1");
  server = createServer({
    name: "orders",
    title: "Orders",
    version: "1.0.0",
    logSink: (entry) => logged.push(entry),
    http: { allowedHosts: ["127.0.0.1"], allowedOrigins: ["console.example"] },
    auth: jwt(accepts(signer, { requiredScopes: ["mcp"], algorithms: ["ES256"] })),
    scopeHierarchy: { "orders:refund": ["orders:read"] },
  });
  server.tool("whoami", {}, (_, ctx) => ({
    subject: ctx.caller?.subject,
    client: ctx.caller?.clientId,
    issuer: ctx.caller?.issuer,
    scopes: ctx.caller?.scopes,
  }));
  server.tool("peek", {}, (_, ctx) => ({
    headers: Object.fromEntries(ctx.headers ?? []),
    caller: ctx.caller,
    meta: ctx.meta,
  }));
  server.tool("read", { scopes: ["orders:read"] }, () => "read");
  server.tool("refund", { scopes: ["orders:refund", "orders:pay"] }, () => "refunded");
  server.tool("secret", { scopes: ["orders:refund"], visible: () => false }, () => "never");
  server.tool(
    "spying",
    {
      scopes: ["orders:refund"],
      visible: (_, viewer) => {
        for (const [name] of viewer.headers ?? []) spied.add(name);
        return true;
      },
    },
    () => "never",
  );
  server.tool("ask", { input: z.object({}) }, async (_, ctx) => (await ctx.elicit("Sure?", ["yes", "no"])).action);
  server.resource("order://{id}", { scopes: ["orders:read"], complete: { id: () => ["1", "2"] } }, ({ id }) => id);
  server.prompt("reply", { scopes: ["orders:read"] }, () => "Dear customer");
  server.resource("news://today", { cache: { ttlMs: 5_000, scope: "public" } }, () => "news");
  server.resource("news://staff", { scopes: ["orders:read"], cache: { ttlMs: 5_000, scope: "public" } }, () => "news");
  const depot = createServer({
    name: "depot",
    version: "1",
    auth: jwt(accepts(signer, { issuer: "https://nobody.example" })),
  });
  server.mount(
    "depot",
    depot.tool("pick", { scopes: ["stock:pick"] }, () => "picked"),
  );
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

const ways = {
  listen: (raw: Raw): Promise<Answer> => overSocket(url, raw),
  fetch: (raw: Raw): Promise<Answer> => overFetch(server, raw),
};
const eras = { modern, legacy };
const call = (name: string): Record<string, unknown> => ({ name, arguments: {} });
const resultOf = ({ messages }: Answer): NonNullable<Reply["result"]> => (messages.at(-1) as Reply).result ?? {};
const errorOf = ({ messages }: Answer): NonNullable<Reply["error"]> =>
  (messages.at(-1) as Reply).error ?? { code: 0, message: "" };
const textOf = (answer: Answer): string => resultOf(answer).content?.[0]?.text ?? "";

describe.each(["listen", "fetch"] as const)("over %s", (way) => {
  const send = (raw: Raw): Promise<Answer> => ways[way](raw);

  describe.each(["modern", "legacy"] as const)("on the %s era", (era) => {
    const make = eras[era];
    const as = async (subject: string, scope: string, method: string, params: Record<string, unknown> = {}) =>
      send(make(method, params, { headers: bearer(await sign(signer, subject, `mcp ${scope}`.trim())) }));

    it("a request without a token is told where tokens come from, and of no error", async () => {
      const { status, headers, messages } = await send(make("tools/call", call("whoami")));
      expect(status).toBe(401);
      expect(headers["www-authenticate"]).toBe(`Bearer scope="mcp", resource_metadata="${METADATA}"`);
      expect(messages).toMatchObject([{ jsonrpc: "2.0", id: null, error: { data: { reason: "token_missing" } } }]);
    });
    it("a good token says who calls", async () => {
      const answer = await as("zhangsan", "orders:read", "tools/call", call("whoami"));
      expect(answer.status).toBe(200);
      expect(JSON.parse(textOf(answer))).toEqual({
        subject: "zhangsan",
        client: "desk",
        issuer: ISSUER,
        scopes: ["mcp", "orders:read"],
      });
    });
    it("no handler sees a credential", async () => {
      const token = await sign(signer, "zhangsan", "mcp");
      const headers = { ...bearer(token), cookie: "session=1", "proxy-authorization": "Basic eA==", "x-own": "1" };
      const answer = await send(make("tools/call", call("peek"), { headers }));
      expect(answer.text).not.toContain(token);
      expect(answer.text).not.toContain(token.split(".")[2]);
      const seen = JSON.parse(textOf(answer)).headers;
      expect(seen).toMatchObject({ "x-own": "1" });
      for (const name of ["authorization", "cookie", "proxy-authorization"]) expect(seen).not.toHaveProperty(name);
    });
    it("no rule about who sees what is shown a credential either", async () => {
      spied.clear();
      await as("u", "", "tools/call", call("spying"));
      await as("u", "", "tools/list");
      expect(spied).toContain("mcp-protocol-version");
      expect(spied).not.toContain("authorization");
    });
    it("a token without the scopes every request needs is refused with all of them", async () => {
      const raw = make("tools/call", call("whoami"), {
        headers: bearer(await sign(signer, "u", "orders:read openid")),
      });
      const { status, headers } = await send(raw);
      expect(status).toBe(403);
      expect(headers["www-authenticate"]).toBe(
        `Bearer error="insufficient_scope", scope="mcp orders:read", resource_metadata="${METADATA}", error_description="The token needs the scope mcp"`,
      );
    });
    it("a tool, resource or prompt whose scopes are lacking is refused with everything it needs", async () => {
      const needs = "orders:refund orders:pay mcp";
      const cases: [string, Record<string, unknown>, string, RegExp][] = [
        ["tools/call", call("refund"), needs, /^Tool refund needs the scope orders:refund orders:pay/],
        [
          "resources/read",
          { uri: "order://1" },
          "orders:read mcp",
          /^Resource order:\/\/1 needs the scope orders:read/,
        ],
        ["prompts/get", { name: "reply" }, "orders:read mcp", /^Prompt reply needs/],
        [
          "completion/complete",
          { ref: { type: "ref/resource", uri: "order://{id}" }, argument: { name: "id", value: "" } },
          "orders:read mcp",
          /^Resource order/,
        ],
      ];
      for (const [method, params, scope, message] of cases) {
        const answer = await as("u", "", method, params);
        expect(answer.status, method).toBe(403);
        expect(answer.headers["www-authenticate"]).toContain(`error="insufficient_scope"`);
        expect(answer.headers["www-authenticate"]).toContain(`scope="${scope}"`);
        expect(answer.headers["www-authenticate"]).toContain(`resource_metadata="${METADATA}"`);
        expect(errorOf(answer)).toMatchObject({ code: -32602, message: expect.stringMatching(message) });
        expect(answer.messages).toMatchObject([{ id: 1 }]);
      }
    });
    it("a client that asks for what a challenge says keeps what it had here, and nothing else is told", async () => {
      const { headers } = await as("u", "orders:read openid", "tools/call", call("refund"));
      expect(headers["www-authenticate"]).toContain('scope="orders:refund orders:pay mcp orders:read"');
    });
    it("with the scopes it works: granted, implied by another, or covered by a star", async () => {
      for (const scope of ["orders:read", "orders:refund", "orders:*"]) {
        expect(textOf(await as("u", scope, "tools/call", call("read"))), scope).toBe("read");
        expect((await as("u", scope, "resources/read", { uri: "order://1" })).status).toBe(200);
        expect((await as("u", scope, "prompts/get", { name: "reply" })).status).toBe(200);
      }
      expect(textOf(await as("u", "orders:*", "tools/call", call("refund")))).toBe("refunded");
      expect((await as("u", "order:*", "tools/call", call("refund"))).status).toBe(403);
    });
    it("lists show what the scopes allow", async () => {
      const names = async (scope: string): Promise<string[]> => {
        const { tools } = resultOf(await as("u", scope, "tools/list")) as unknown as { tools: { name: string }[] };
        return tools.map(({ name }) => name);
      };
      expect(await names("")).toEqual(["ask", "peek", "whoami"]);
      expect(await names("orders:refund")).toEqual(["ask", "peek", "read", "spying", "whoami"]);
      expect(await names("orders:*")).toEqual(["ask", "peek", "read", "refund", "spying", "whoami"]);
    });
    it("what a caller may not know of does not exist, whatever its scopes are", async () => {
      const hidden = await as("u", "", "tools/call", call("secret"));
      const unknown = await as("u", "", "tools/call", call("nothing"));
      expect(hidden.status).toBe(unknown.status);
      expect(errorOf(hidden).message.replace("secret", "nothing")).toBe(errorOf(unknown).message);
    });
  });

  it("lists and discovery are for their caller alone", async () => {
    const headers = bearer(await sign(signer, "u", "mcp"));
    for (const method of ["server/discover", "tools/list", "resources/list"]) {
      expect(resultOf(await send(modern(method, {}, { headers })))).toMatchObject({ cacheScope: "private" });
    }
  });
  it("a resource is for everybody only if everybody may read it", async () => {
    const headers = bearer(await sign(signer, "u", "mcp orders:read"));
    const scope = async (uri: string): Promise<unknown> =>
      resultOf(await send(modern("resources/read", { uri }, { headers }))).cacheScope;
    expect([await scope("news://today"), await scope("news://staff")]).toEqual(["public", "private"]);
  });
  it("of a mounted server the scopes count, and the outer server's tokens", async () => {
    const pick = async (scope: string): Promise<Answer> =>
      send(modern("tools/call", call("depot_pick"), { headers: bearer(await sign(signer, "u", scope)) }));
    const lacking = await pick("mcp");
    expect(lacking.status).toBe(403);
    expect(lacking.headers["www-authenticate"]).toContain('scope="stock:pick mcp"');
    expect(textOf(await pick("mcp stock:pick"))).toBe("picked");
  });
  it("says what it is to whoever asks, from any page", async () => {
    for (const path of ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"]) {
      const address = new URL(path, way === "listen" ? url : "http://127.0.0.1");
      const ask = (init: RequestInit): Promise<Response> =>
        way === "listen" ? fetch(address, init) : server.fetch(new Request(address, init));
      const said = await ask({ headers: { origin: "https://inspector.example" } });
      expect(said.status).toBe(200);
      expect(said.headers.get("access-control-allow-origin")).toBe("*");
      expect(await said.json()).toEqual({
        resource: "https://orders.example/mcp",
        authorization_servers: [ISSUER],
        scopes_supported: ["mcp"],
        bearer_methods_supported: ["header"],
        resource_name: "Orders",
      });
      expect((await ask({ method: "HEAD" })).status).toBe(200);
      expect((await ask({ method: "OPTIONS" })).status).toBe(204);
      expect((await ask({ method: "POST" })).status).toBe(405);
    }
  });
  it("pages of an allowed origin may read the challenge", async () => {
    const { status, headers } = await send(
      modern("tools/list", {}, { headers: { origin: "https://console.example" } }),
    );
    expect(status).toBe(401);
    expect(headers["access-control-expose-headers"]).toContain("WWW-Authenticate");
  });
  it("a question's state is worth nothing to another caller", async () => {
    const headers = async (subject: string) => bearer(await sign(signer, subject, "mcp"));
    const meta = { [META.capabilities]: { elicitation: { form: {} } } };
    const asked = await send(modern("tools/call", call("ask"), { headers: await headers("alice"), meta }));
    const reply = asked.messages.at(-1) as Reply;
    const retry = { ...call("ask"), ...answering(reply, { "Sure?": { action: "accept", content: { value: "yes" } } }) };
    const stolen = await send(modern("tools/call", retry, { headers: await headers("mallory"), meta }));
    expect(errorOf(stolen)).toMatchObject({ code: -32602, data: { reason: "foreign" } });
    expect(textOf(await send(modern("tools/call", retry, { headers: await headers("alice"), meta })))).toBe("accept");
  });
  it("a session is worth nothing to another caller, or without a token", async () => {
    const with_ = async (subject: string, raw: Raw): Promise<Raw> => ({
      ...raw,
      headers: { ...raw.headers, ...bearer(await sign(signer, subject, "mcp")) },
    });
    const opened = await send(await with_("alice", initialize()));
    expect(opened.status).toBe(200);
    const list = legacy("tools/list", {}, { headers: sessionOf(opened) });
    expect((await send(await with_("alice", list))).status).toBe(200);
    expect((await send(await with_("mallory", list))).status).toBe(404);
    expect((await send(list)).status).toBe(401);
  });
  it("in a session, too, a lacking scope is a status, and the call never begins", async () => {
    const headers = bearer(await sign(signer, "u", "mcp"));
    const { headers: opened } = await send({ ...initialize(), headers: { ...initialize().headers, ...headers } });
    const inside = { ...headers, ...sessionOf({ headers: opened }) };
    expect((await send(legacy("tools/call", call("refund"), { headers: inside }))).status).toBe(403);
    const watched = legacy("resources/subscribe", { uri: "order://1" }, { headers: inside });
    expect((await send(watched)).status).toBe(403);
  });
});

describe("the server's log", () => {
  it("says why tokens were refused, and holds none", async () => {
    const token = await sign(signer, "u", "mcp", { expiresIn: -600 });
    expect((await overSocket(url, modern("tools/list", {}, { headers: bearer(token) }))).status).toBe(401);
    expect(logged).toContainEqual(
      expect.objectContaining({ message: "request refused: invalid_token", reason: "expired" }),
    );
    expect(JSON.stringify(logged)).not.toContain(token);
  });
  it("says which audience and issuer were expected, since the caller is not told", async () => {
    for (const [claim, expected] of [
      ["aud", AUDIENCE],
      ["iss", ISSUER],
    ] as const) {
      const token = await sign(signer, "u", "mcp", { claims: { [claim]: "http://localhost:8000/mcp" } });
      const answer = await overSocket(url, modern("tools/list", {}, { headers: bearer(token) }));
      expect([answer.status, answer.text.includes(expected)]).toEqual([401, false]);
      expect(logged).toContainEqual(expect.objectContaining({ expected: [expected] }));
    }
  });
});
