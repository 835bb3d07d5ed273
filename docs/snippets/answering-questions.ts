import assert from "node:assert/strict";
import { PassThrough } from "node:stream";
import { createServer } from "@tenon/server";
import { z } from "zod";

const server = createServer({ name: "shop", version: "1.0.0", logSink: () => undefined });
server.tool("order", {}, async (_, ctx) => {
  const form = z.object({ size: z.enum(["S", "M", "L"]), count: z.number().int().min(1).max(9) });
  const answer = await ctx.elicit("What shall it be?", form);
  return answer.action === "accept" ? `${answer.data.count} × ${answer.data.size}` : answer.action;
});
server.tool("sign_in", {}, async (_, ctx) => {
  const answer = await ctx.elicitUrl("Sign in to the bank", (id) => `https://bank.example/start?id=${id}`);
  return answer.action;
});
const { url } = await server.listen({ port: 0 });

const seen: unknown[] = [];
const dialog = {
  count: 0,
  async show(message: string, fields: readonly { name: string; kind: string }[], hints: Record<string, string>) {
    seen.push(message, fields.map(({ name, kind }) => `${name}: ${kind}`).join(), hints);
    return this.count++ === 0 ? { size: "XL", count: 2 } : { size: "L", count: 2 };
  },
};

// #region first
import { createClient, type ElicitationHandler } from "@tenon/client";

const ask: ElicitationHandler = async (question, { server, tool, signal }) => {
  if (signal.aborted) return { action: "cancel" };
  if (question.mode === "url") return { action: "decline" };
  const hints = Object.fromEntries((question.problems ?? []).map(({ field, message }) => [field ?? "", message]));
  const content = await dialog.show(`${server}/${tool}: ${question.message}`, question.fields, hints);
  return { action: "accept", content };
};

const client = createClient({ servers: { shop: { url } }, elicitation: ask });
const result = await client.callTool("shop", "order");
// #endregion
assert.deepEqual(result.content, [{ type: "text", text: "2 × L" }]);
assert.deepEqual(seen, [
  "shop/order: What shall it be?",
  "size: choice,count: number",
  {},
  "shop/order: What shall it be?",
  "size: choice,count: number",
  { size: 'must be one of: S, M, L, got "XL"' },
]);

const fields = [{ kind: "number" as const, name: "count", required: true, integer: true, minimum: 1 }];

// #region check
import { checkAnswer, parseFieldText } from "@tenon/client/forms";

const wrong = checkAnswer(fields, { count: 0 });
assert.deepEqual(
  wrong.map(({ field, message }) => `${field} ${message}`),
  ["count must be at least 1, got 0"],
);
assert.deepEqual(wrong[0]?.problem, { code: "too_small", limit: 1 }); // to say it in other words
const [count] = fields;
if (count) assert.deepEqual(parseFieldText(count, " 3 "), { value: 3 }); // what a person typed
// #endregion

// the page behind the address: it reports when the person is done
const browser = {
  open: (address: string) => server.completeElicitation(new URL(address).searchParams.get("id") ?? "", {}),
};
const person = { agrees: async (text: string) => text.includes("bank.example") };
// #region url
const visiting: ElicitationHandler = async (question) => {
  if (question.mode !== "url") return { action: "cancel" };
  const { display, punycode, mixedScripts } = question.host;
  const site = mixedScripts || punycode !== display ? `${display} (${punycode})` : display;
  if (!(await person.agrees(`${question.message}: open ${site}?`))) return { action: "decline" };
  await browser.open(question.url);
  return { action: "accept" };
};
const banking = createClient({
  servers: { shop: { url, expectHosts: ["bank.example"] } },
  elicitation: visiting,
});
// #endregion
assert.deepEqual((await banking.callTool("shop", "sign_in")).content, [{ type: "text", text: "accept" }]);
await banking.close();

const input = new PassThrough();
const output = new PassThrough();
input.end("2\n4\n");

// #region terminal
import { askInTerminal } from "@tenon/client/terminal";

const talking = createClient({
  servers: { shop: { url } },
  elicitation: (question, { server, signal }) => askInTerminal(question, { server, signal, input, output }),
});
// #endregion
assert.deepEqual((await talking.callTool("shop", "order")).content, [{ type: "text", text: "4 × M" }]);
await talking.close();

const inbox: string[] = [];

// #region driver
import type { CallDriver } from "@tenon/client";

class Waits extends Error {}
const answers = new Map<string, { size: string; count: number }>();
const driver: CallDriver = {
  leg: (send) => send(), // a durable one remembers what it returned
  async answer(questions) {
    const given = Object.entries(questions).flatMap(([key, { message }]) => {
      const content = answers.get(message);
      if (!content) inbox.push(message);
      return content ? [[key, { action: "accept" as const, content }]] : [];
    });
    if (given.length < Object.keys(questions).length) throw new Waits("somebody has to answer first");
    return Object.fromEntries(given);
  },
};
const suspending = createClient({ servers: { shop: { url } }, elicitation: "interrupt" });
await assert.rejects(suspending.callTool("shop", "order", {}, { driver }), Waits);
answers.set("What shall it be?", { size: "S", count: 1 });
const later = await suspending.callTool("shop", "order", {}, { driver });
// #endregion
assert.deepEqual(inbox, ["What shall it be?"]);
assert.deepEqual(later.content, [{ type: "text", text: "1 × S" }]);
await suspending.close();
await client.close();
await server.close();
