import { copyFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stateByTrace } from "@tenon/agent";
import { createClient } from "@tenon/client";
import { fileRegistry } from "@tenon/client/registry";
import { ContractError } from "@tenon/core";
import { newContractKey, publicContractKey, writeContractKeys } from "@tenon/core/contract";
import Database from "better-sqlite3";
import { check } from "../lib/check.ts";
import { say } from "../lib/locale.ts";
import { openDesk } from "./desk.ts";
import { front } from "./front.ts";
import { start, until, writeRegistry } from "./places.ts";
import { streamOfQuestions } from "./stream.ts";

const folder = mkdtempSync(join(tmpdir(), "approval-and-knowledge-"));

// Each server signs its contract with a key of its own; whoever calls it has the other half.
const kbKey = newContractKey({ kid: "kb-2026-11", alg: "EdDSA" });
const approvalKey = newContractKey({ kid: "approval-2026-11", alg: "EdDSA" });
const kbContract = { keys: [publicContractKey(kbKey)] };
const startKb = (name: string, version: string) =>
  start("knowledge.ts", writeContractKeys([kbKey]), folder, name, version);
const startApproval = (port: string) => start("approvals.ts", writeContractKeys([approvalKey]), folder, port);

const [kb1, kb2, evening] = await Promise.all([startKb("kb-1", "1.0.0"), startKb("kb-2", "1.0.0"), startApproval("0")]);
const services = join(folder, "services.json");
const places = { "kb-1": kb1.url, "kb-2": kb2.url };
writeRegistry(services, places);
const registry = fileRegistry(services);
const servers = {
  kb: { service: "knowledge", contract: kbContract },
  approval: { url: evening.url, contract: { keys: [publicContractKey(approvalKey)] } },
};
let desk = await openDesk({ folder, registry, servers });

interface Told {
  readonly server: string;
  readonly replica?: string;
  readonly method: string;
  readonly context: { readonly user_id: string; readonly session_id: string; readonly trace_id: string };
}
/** What the servers were told in a session, in order. */
const toldIn = (session: string): Told[] =>
  readFileSync(join(folder, "told"), "utf8")
    .split("\n")
    .flatMap((line): Told[] => (line ? [JSON.parse(line)] : []))
    .filter(({ context }) => context.session_id === session);

/** What the approval flow has written down. */
function records(): unknown[] {
  const db = new Database(join(folder, "approvals.sqlite"), { readonly: true });
  const rows = db.prepare("select user_id, amount, decision from approvals order by rowid").all();
  db.close();
  return rows;
}

/** What a contract that is not met says of itself. */
const reasonOf = (error: unknown): unknown => (error instanceof ContractError ? [error.code, error.data] : error);

// ── A question that the knowledge base can answer
const small = await desk.ask("s-1", { user_id: "lin", question: say("退款", "refund"), amount: 499 });
check("two characters, or a word, find the article about them", small.found?.hits[0]?.name, "refunds");
const words = new RegExp(say("^【退款】原路返回：支付宝与微信", "A 【refund】 goes back the way the payment came"));
check("with the words around them", small.found?.hits[0]?.snippet, words);
check("the answer is the whole article", small.answer, /^# 退款 \/ Refunds.*原路返回.*approval of a manager/s);
check("below 500 nobody is asked", [small.decided, await desk.waiting("s-1")], [undefined, []]);
const more = await desk.ask("s-1", { user_id: "lin", question: say("发票", "invoice") });
check("the best article comes first", more.found?.hits.map(({ name }) => name).slice(0, 2), ["invoices", "warranty"]);

// ── Much money: a person is asked in the evening, and everything is switched off
const claim = { user_id: "lin", question: say("耳机有杂音，申请退款", "My headphones crackle: a refund"), amount: 899 };
await desk.ask("s-2", claim);
await desk.ask("s-3", { ...claim, amount: 700 });
await desk.ask("s-4", { ...claim, amount: 600 });
const [asked] = await desk.waiting("s-2");
const asks = say("批准“耳机有杂音，申请退款”，金额 899 元？", 'Approve 899 for "My headphones crackle: a refund"?');
check("from 500 on a person is asked", asked?.startsWith(asks), true);
check("with the grounds", asked, new RegExp(say("依据：.*【退款】原路返回", "Grounds: .*【Refunds】 of 500 and more")));
check("and nothing is written down yet", records(), []);
await desk.close();
await evening.stop();
const threads = join(folder, "threads.sqlite");
copyFileSync(threads, `${threads}.evening`);

const morning = await startApproval(new URL(evening.url).port);
desk = await openDesk({ folder, registry, servers });
check("in the morning another client and another graph know the question", await desk.waiting("s-2"), [asked]);
const approved = await desk.answer("s-2", "approve");
const outcome = approved.answer?.split("\n").at(-1);
check("an approval goes on to the reply", outcome, say("审批 1：已批准", "Approval 1: approved"));
const rejected = await desk.answer("s-3", "reject");
check("so does a rejection", rejected.decided, { decision: "rejected", number: 2 });
const unanswered = await desk.answer("s-4", "decline");
check("who will not answer has not approved", unanswered.decided, { decision: "unanswered", number: 3 });
const written = [
  { user_id: "lin", amount: 899, decision: "approved" },
  { user_id: "lin", amount: 700, decision: "rejected" },
  { user_id: "lin", amount: 600, decision: "unanswered" },
];
check("each is written down once", records(), written);

// ── As if the process had died in the morning, with the answer sent and nothing of it saved
await desk.close();
copyFileSync(`${threads}.evening`, threads);
desk = await openDesk({ folder, registry, servers });
check("a desk that did not save the answer asks again", await desk.waiting("s-2"), [asked]);
check("and gets the outcome of the first time", (await desk.answer("s-2", "approve")).decided, approved.decided);
check("which is not written down twice", records(), written);

// ── Both servers know who asks, and their logs lead back to the state
const told = toldIn("s-2");
const calls = told.map(
  ({ server, method, context }) => `${server} ${method}: ${context.user_id}, ${context.session_id}`,
);
check(
  "both servers are told who asks, and in which session",
  [...new Set(calls)],
  ["kb tools/call: lin, s-2", "kb resources/read: lin, s-2", "approval tools/call: lin, s-2"],
);
const tracesOf = (name: string) => [
  ...new Set(told.filter(({ server }) => server === name).map(({ context }) => context.trace_id)),
];
const [looking = "", ...others] = tracesOf("kb");
const [approving = "", ...later] = tracesOf("approval");
check("a search and what is read after it are one trace, a question and its answer another", [others, later], [[], []]);
const atSearch = await stateByTrace(desk.checkpointer, looking);
check("the first leads to the state that asked, with nothing found", atSearch?.values, claim);
const atApproval = await stateByTrace(desk.checkpointer, approving);
check("the second to the one that wanted an approval", atApproval?.values.article, approved.article);
const { context: last } = await desk.client.getContext("approval", "s-4");
check("a server says itself what it was told last in a session", last.user_id, "lin");

// ── A state that does not say who asks
const honest = await front(kb1.url);
const nobody = await openDesk({
  folder,
  registry,
  servers: { ...servers, kb: { url: honest.url, contract: kbContract } },
});
const before = honest.asked.length;
const stopped = await nobody.ask("s-5", { question: say("退款", "refund") }).catch(reasonOf);
check("a state without user_id stops, and the field is named", stopped, [
  "missing_context_field",
  { reason: "missing_context_field", field: "user_id" },
]);
check("before anything is sent", honest.asked.slice(before), []);
const corrected = await nobody.goOn("s-5", { user_id: "lin" });
check("with the field it goes on where it stopped", corrected.found?.hits[0]?.name, "refunds");
check("and is sent then", honest.asked.slice(before), ["tools/call", "resources/read"]);
await nobody.close();
honest.close();

// ── Somebody in the middle makes the list of capabilities longer
const forged = await front(kb1.url, (answer) => answer.replace('"tools.execute"', '"tools.execute","prompts.get"'));
const fooled = createClient({ servers: { kb: { url: forged.url, contract: kbContract } } });
const lin = { "dev.tenon/context": { user_id: "lin", session_id: "s-6" } };
const caught = await fooled.callTool("kb", "search_articles", { query: "x" }, { meta: lin }).catch(reasonOf);
check("a list that was changed on the way is refused", caught, [
  "signature",
  { reason: "invalid", server_id: "knowledge", kid: "kb-2026-11" },
]);
check("before any call", forged.asked, ["server/discover"]);
await fooled.close();
forged.close();

// ── The knowledge base is upgraded while questions are asked
const conversations = Array.from({ length: 9 }, (_, n) => `u-${n}`);
const stream = streamOfQuestions(desk, conversations, say("退款", "refund"));
await stream.round();
const [new1, new2] = await Promise.all([startKb("kb-1", "1.1.0"), startKb("kb-2", "1.1.0")]);
const replicas = () => desk.client.servers().find(({ server }) => server === "kb")?.replicas ?? [];
for (const [id, old, { url }] of [
  ["kb-1", kb1, new1],
  ["kb-2", kb2, new2],
] as const) {
  places[id] = url; // beside the old one, which goes on with what it has begun
  writeRegistry(services, places);
  await until(
    `${id} has moved`,
    () => replicas().every(({ leaving }) => !leaving) && replicas().some((one) => one.url === url),
  );
  await old.stop();
  await stream.round();
}
await stream.end();
check("no question failed", stream.failures, []);
const by = (thread: string) => stream.answers.filter((answer) => answer.thread === thread);
check("both replicas had conversations", new Set(stream.answers.map(({ replica }) => replica)).size, 2);
check(
  "each conversation kept its replica, also for what it read",
  conversations.map((thread) => new Set(toldIn(thread).map(({ replica }) => replica)).size),
  conversations.map(() => 1),
);
check(
  "and went from 1.0.0 to 1.1.0, once",
  conversations.map((thread) =>
    by(thread)
      .map(({ version }) => version)
      .filter((version, i, all) => version !== all[i - 1]),
  ),
  conversations.map(() => ["1.0.0", "1.1.0"]),
);
console.log(`${stream.answers.length} questions were answered meanwhile`);

await desk.close();
await registry.close();
await Promise.all([new1.stop(), new2.stop(), morning.stop()]);
rmSync(folder, { recursive: true });
