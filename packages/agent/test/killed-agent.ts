/** An agent in a process of its own that ends itself with SIGKILL at a marked point. Started by durable-kill.test.ts. */
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { type ClientOptions, createClient } from "@tenon/client";
import { audit } from "@tenon/client/interceptors";
import { isRecord } from "@tenon/core";
import { openSqlite } from "@tenon/store/sqlite";
import { createAgent } from "langchain";
import {
  type AgentInterceptor,
  type Answer,
  approvals,
  mcpMiddleware,
  mcpTools,
  type Question,
  runInteractive,
} from "../src/index.ts";
import { callingModel } from "./scripted-model.ts";

/** Where a process dies. `server-ran`: the server ends the process itself. */
export const POINTS = ["before-question", "after-question", "answered", "server-ran", "before-checkpoint"] as const;
/** The same before a call that needs an approval is sent: its answer of the model is saved, it is asked about, it is approved. */
export const UNSENT = ["chosen", "asked-about", "approved"] as const;
export type Point = (typeof POINTS)[number] | (typeof UNSENT)[number];

/** What one process has to do; it comes in the environment as JSON. */
export interface Job {
  readonly url: string;
  readonly threadId: string;
  readonly orders: readonly string[];
  /** Whether each call needs an approval before it is sent. */
  readonly approved: boolean;
  /** Whether the server asks. */
  readonly asks: boolean;
  readonly saver: SaverAt;
  /** File of the audit trail. */
  readonly audit: string;
  readonly point: Point;
  /** Milliseconds by which the clock of the process is ahead. */
  readonly aheadMs?: number;
}

export type SaverAt = { readonly sqlite: string } | { readonly postgres: string; readonly schema: string };

type Saver = BaseCheckpointSaver & { close(): Promise<void> };

/** Opens the place where threads are saved; only the module of the database that is used is loaded. */
export async function openSaver(at: SaverAt): Promise<Saver> {
  if ("sqlite" in at) {
    const { SqliteSaver } = await import("@langchain/langgraph-checkpoint-sqlite");
    const saver = SqliteSaver.fromConnString(at.sqlite);
    return Object.assign(saver, { close: async () => void saver.db.close() });
  }
  const { PostgresSaver } = await import("@langchain/langgraph-checkpoint-postgres");
  const saver = PostgresSaver.fromConnString(at.postgres, { schema: at.schema });
  return Object.assign(saver, { close: () => saver.end() });
}

export async function startAgent(
  job: Pick<Job, "url" | "orders" | "approved" | "asks">,
  checkpointer: BaseCheckpointSaver,
  interceptors: AgentInterceptor[] = [],
) {
  const servers: ClientOptions["servers"] = { shop: { url: job.url } };
  const client = createClient({ servers, elicitation: "interrupt", interceptors });
  const tools = await mcpTools(client);
  const agent = createAgent({
    model: callingModel(...job.orders.map((order) => ({ name: "mcp_shop_refund", args: { order, ask: job.asks } }))),
    tools,
    middleware: [mcpMiddleware({ client }), approvals(tools, { "shop/refund": job.approved }, { client })],
    checkpointer,
  });
  return { agent, client };
}

/** Says yes to everything. */
export function yes(question: Question): Answer {
  if (question.kind === "approval") return { decisions: question.actions.map(() => ({ type: "approve" as const })) };
  const keys = Object.keys(question.questions);
  return { answers: Object.fromEntries(keys.map((key) => [key, { action: "accept", content: { ok: true } }])) };
}

/** Whether a write of the checkpointer keeps a question of this kind. */
function asks([channel, value]: [string, unknown], kind: "elicitation" | "approval"): boolean {
  const interrupts = channel === "__interrupt__" ? [value].flat() : [];
  return interrupts.some((one) => isRecord(one) && isRecord(one.value) && one.value.type === kind);
}

async function run(job: Job): Promise<void> {
  const die = () => process.kill(process.pid, "SIGKILL");
  const now = Date.now;
  Date.now = () => now() + (job.aheadMs ?? 0);
  const saver = await openSaver(job.saver);
  const putWrites = saver.putWrites.bind(saver);
  saver.putWrites = async (config, writes, taskId) => {
    const asked = writes.some((write) => asks(write, "elicitation"));
    if (asked && job.point === "before-question") die();
    if (job.point === "before-checkpoint" && JSON.stringify(writes).includes("refunded")) die();
    await putWrites(config, writes, taskId);
    if (asked && job.point === "after-question") die();
    if (job.point === "asked-about" && writes.some((write) => asks(write, "approval"))) die();
    if (job.point === "chosen" && writes.some(([, value]) => JSON.stringify(value).includes("tenon_calls"))) die();
  };
  let answered = false;
  const watch: AgentInterceptor = async (request, next) => {
    if (job.point === "approved" || (answered && job.point === "answered")) die();
    return next(request);
  };
  const { agent } = await startAgent(job, saver, [
    audit({ sink: openSqlite({ path: job.audit }).audit.sink(), redact: {} }),
    watch,
  ]);
  await runInteractive(agent, "go", {
    threadId: job.threadId,
    ask: (question) => {
      answered ||= question.kind === "elicitation";
      return yes(question);
    },
  });
  console.error(`the run came to its end without passing ${job.point}`);
  process.exit(3);
}

const given = process.env.TENON_KILLED_AGENT;
if (given !== undefined) await run(JSON.parse(given) as Job); // written by the test
