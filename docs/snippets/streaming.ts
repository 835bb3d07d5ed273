import assert from "node:assert/strict";
import { MemorySaver } from "@langchain/langgraph";
import { approvals, mcpMiddleware, mcpTools, resolveModel } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { createServer } from "@tenon/server";
import { createAgent } from "langchain";
import { z } from "zod";

const orders = createServer({ name: "orders", version: "1.0.0", logSink: () => undefined });
orders.tool("refund", { input: z.object({ id: z.string(), token: z.string() }) }, async ({ id }, ctx) => {
  const answer = await ctx.elicit(`Refund ${id}?`, ["yes", "no"]);
  await ctx.progress(1, 1, "booked");
  return answer.action === "accept" && answer.data === "yes" ? `${id} refunded` : "not refunded";
});
const { url } = await orders.listen({ port: 0 });
const client = createClient({ servers: { order: { url } }, elicitation: "interrupt" });
const tools = await mcpTools(client);
const agent = createAgent({
  model: await resolveModel("offline"),
  tools,
  middleware: [mcpMiddleware(), approvals(tools, {}, { derive: false })],
  checkpointer: new MemorySaver(),
});
const shown: string[] = [];
const page = { add: (text: string) => shown.push(text) };

// #region first
import { type StreamEvent, type StreamInput, streamRun } from "@tenon/agent";

async function show(input: StreamInput): Promise<StreamEvent | undefined> {
  let last: StreamEvent | undefined;
  for await (const event of streamRun(agent, input, { threadId: "t1" })) {
    last = event;
    if (event.type === "text") page.add(event.delta);
    if (event.type === "tool-start") page.add(`${event.server}/${event.tool} ${JSON.stringify(event.args)}`);
    if (event.type === "progress") page.add(`${event.toolCallId} ${event.percent}% ${event.message}`);
    if (event.type === "tool-end") page.add(`${event.status}: ${event.text}`);
    if (event.type === "question") page.add(`${event.question.kind} ${event.question.id}`);
    if (event.type === "error") page.add(`${event.error.code}: ${event.error.message}`);
  }
  return last; // always the end: done, waiting, failed or aborted
}
const end = await show('/tool mcp_order_refund {"id":"ORD-1","token":"secret"}');
// #endregion
assert.ok(end?.type === "end" && end.state === "waiting");

// #region resume
import { openQuestions } from "@tenon/agent";

const [question] = await openQuestions(agent, "t1"); // what the `question` event carried
if (question?.kind === "elicitation") {
  const { id, elicitationId } = question;
  const answers = Object.fromEntries(
    Object.keys(question.questions).map((key) => [key, { action: "accept", content: { value: "yes" } } as const]),
  );
  await show({ resume: [{ id, elicitationId, answers }] });
}
// #endregion
assert.ok(shown.includes("success: ORD-1 refunded"), shown.join("\n"));
assert.ok(shown.some((line) => line.endsWith("100% booked")));

const terminal = { write: (text: string) => shown.push(text) };
const prompt = async (_: unknown) => ({ action: "accept", content: { value: "yes" } }) as const;
const message = '/tool mcp_order_refund {"id":"ORD-3","token":"secret"}';

// #region terminal
import { type Answer, type Question, streamInteractive } from "@tenon/agent";

async function ask(question: Question): Promise<Answer | undefined> {
  if (question.kind === "approval") return undefined; // leaves it open: the stream ends as waiting
  const keys = Object.keys(question.questions);
  const answers = await Promise.all(keys.map(async (key) => [key, await prompt(question.questions[key])] as const));
  return { answers: Object.fromEntries(answers) };
}
for await (const event of streamInteractive(agent, message, { threadId: "t3", ask })) {
  if (event.type === "text") terminal.write(event.delta);
  if (event.type === "tool-end") terminal.write(event.text);
  if (event.type === "error") terminal.write(event.error.message);
}
// #endregion
assert.ok(shown.includes("ORD-3 refunded"), shown.join("\n"));

// #region redact
import { redactor } from "@tenon/client/interceptors";

const lines: string[] = [];
const run = streamRun(agent, '/tool mcp_order_refund {"id":"ORD-2","token":"secret"}', {
  threadId: "t2",
  redact: redactor({ keys: ["token"] }),
  onError: (error, reference) => console.error(reference, error), // what an event only calls "unexpected"
});
for await (const event of run) lines.push(JSON.stringify(event)); // one line each: ready for a socket or a file
// #endregion
assert.ok(lines.some((line) => line.includes("[redacted]")));
assert.ok(lines.every((line) => !/"token":"secret"/.test(line)));
await client.close();
await orders.close();
