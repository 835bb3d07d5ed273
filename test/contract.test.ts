import { createClient } from "@tenon/client";
import { type ContractKey, newContractKey, publicContractKey } from "@tenon/core/contract";
import { createServer } from "@tenon/server";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";

const context = { user_id: "ann", session_id: "s-1" };
const key = newContractKey({ kid: "k", alg: "EdDSA" });
const called: unknown[] = [];
const server = createServer({
  name: "orders",
  version: "1",
  logSink: () => undefined,
  contract: { schema: z.object({ user_id: z.string(), session_id: z.string() }), keys: [key] },
});
server.tool("who", {}, (_, ctx) => {
  called.push(ctx.context);
  return "called";
});
let url: string;
beforeAll(async () => {
  ({ url } = await server.listen({ port: 0 }));
});
afterAll(() => server.close());

const connect = (keys: readonly ContractKey[]) =>
  createClient({ servers: { orders: { url, contract: { keys, context } } } });

describe("a client and a server that have a contract", () => {
  it("agree by the public half of the key, and both know the context of a session", async () => {
    await using client = connect([publicContractKey(key)]);
    await client.callTool("orders", "who");
    expect(called).toEqual([context]);
    expect(await client.getContext("orders", "s-1")).toMatchObject({ context, expiresAt: expect.any(String) });
  });
  it("have nothing to do with each other where the key is another one of the same name", async () => {
    called.length = 0;
    await using client = connect([publicContractKey(newContractKey({ kid: "k", alg: "EdDSA" }))]);
    const refused = { code: "signature", data: { reason: "invalid" } };
    await expect(client.callTool("orders", "who")).rejects.toMatchObject(refused);
    expect(called).toEqual([]);
  });
});
