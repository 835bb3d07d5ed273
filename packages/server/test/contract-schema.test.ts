import { readFileSync } from "node:fs";
import type { JsonObject } from "@tenon/core";
import { newContractKey } from "@tenon/core/contract";
import { schemaCheck } from "@tenon/core/internal/schema-check";
import { describe, expect, it } from "vitest";
import { CONTEXT, desk } from "./contract-server.ts";
import { initialize, modern, overFetch } from "./raw-requests.ts";

const EXTENSION = "dev.tenon/context";
const folder = new URL("../../../docs/extensions/", import.meta.url);
const json = (name: string) => JSON.parse(readFileSync(new URL(name, folder), "utf8"));
const { $defs } = json("context.schema.json") as { $defs: JsonObject };
const keys = [newContractKey({ kid: "k", alg: "HS256" })];

interface Answer {
  result: { capabilities: Record<"extensions" | "experimental", Record<string, unknown>> };
  error: unknown;
}

/** Holds a message against the published schema of its kind. */
function fits(kind: string, value: unknown): void {
  const compiled = schemaCheck({ $ref: `#/$defs/${kind}`, $defs });
  if (compiled.fault) throw new Error(compiled.fault.problem);
  expect(compiled.check(value), JSON.stringify(value)).toEqual({ ok: true });
}

describe("the published schemas", () => {
  it("are what a server announces, refuses and answers", async () => {
    const contract = { schema: CONTEXT, keys, capabilities: ["tools.list", "tools.execute", "contexts.get"] };
    await using server = desk({ contract });
    const ask = async (...request: Parameters<typeof modern>) =>
      (await overFetch(server, modern(...request))).messages[0] as Answer;
    const meta = { [EXTENSION]: { user_id: "alice", session_id: "s" }, "dev.tenon/contract": "0.4.2" };
    fits("requestMeta", meta);
    fits("declaration", (await ask("server/discover")).result.capabilities.extensions[EXTENSION]);
    const [legacy] = (await overFetch(server, initialize())).messages as [Answer];
    fits("declaration", legacy.result.capabilities.experimental[EXTENSION]);
    await ask("tools/call", { name: "who", arguments: {} }, { meta });
    fits("contextsGetResult", (await ask("contexts/get", { session_id: "s" })).result);
    const refusals: Parameters<typeof modern>[] = [
      ["tools/call", { name: "who", arguments: {} }],
      ["tools/call", { name: "who", arguments: {} }, { meta: { [EXTENSION]: 1 } }],
      ["tools/list", {}, { meta: { "dev.tenon/contract": "9.9.9" } }],
      ["prompts/list", {}],
      ["contexts/get", { session_id: "nobody's" }],
    ];
    for (const refusal of refusals) fits("error", (await ask(...refusal)).error);
  });
  it("are what the endpoints of older clients take and answer", async () => {
    await using server = desk({ contract: { schema: CONTEXT, keys } });
    const body = { jsonrpc: "3.0", id: 1, method: "mcp.handshake", params: { protocol_version: "0.4.2" } };
    fits("envelope", body);
    fits("handshakeParams", body.params);
    const headers = { host: "127.0.0.1", "content-type": "application/json" };
    const request = new Request("http://127.0.0.1/mcp/handshake", {
      method: "POST",
      headers,
      body: JSON.stringify(body),
    });
    fits("handshakeResult", ((await (await server.fetch(request)).json()) as Answer).result);
  });
  it("let the vectors through", () => {
    const { declarations } = json("context-vectors.json") as { declarations: { declaration: unknown }[] };
    for (const { declaration } of declarations) fits("declaration", declaration);
  });
});
