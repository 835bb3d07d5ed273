/** An agent in a process of its own whose call becomes a task. It ends itself with SIGKILL at a marked point. */
import type { BaseCheckpointSaver } from "@langchain/langgraph";
import { type ClientOptions, createClient } from "@tenon/client";
import { isRecord } from "@tenon/core";
import { createAgent } from "langchain";
import { type Answer, mcpMiddleware, mcpTools, type Question, runInteractive } from "../src/index.ts";
import { openSaver, type SaverAt } from "./killed-agent.ts";
import { callingModel } from "./scripted-model.ts";

/**
 * Where a process dies: the server has the task, the checkpoint not yet; the checkpoint has it; a while after that; when the
 * question is saved; when the answer was sent, but the result not yet saved. `none`: when the test wants it.
 */
export const POINTS = ["begun", "recorded", "after-question", "before-checkpoint"] as const;
export type Point = (typeof POINTS)[number] | "none";

/** What one process has to do; it comes in the environment as JSON. */
export interface TaskJob {
  readonly url: string;
  readonly threadId: string;
  /** The arguments of the call. */
  readonly args: Record<string, unknown>;
  readonly tool: string;
  /** Whether questions interrupt the run, or a handler says yes. */
  readonly interrupts: boolean;
  readonly saver: SaverAt;
  readonly point: Point;
}

const ok = { action: "accept" as const, content: { ok: true } };

export async function startTaskAgent(
  job: Pick<TaskJob, "url" | "args" | "tool" | "interrupts">,
  checkpointer: BaseCheckpointSaver,
) {
  const servers: ClientOptions["servers"] = { shop: { url: job.url } };
  const client = createClient({ servers, elicitation: job.interrupts ? "interrupt" : () => ok });
  const agent = createAgent({
    model: callingModel({ name: `mcp_shop_${job.tool}`, args: job.args }),
    tools: await mcpTools(client),
    middleware: [mcpMiddleware()],
    checkpointer,
  });
  return { agent, client };
}

/** Says yes to everything that is asked. */
export function yes(question: Question): Answer {
  if (question.kind === "approval") return { decisions: question.actions.map(() => ({ type: "approve" as const })) };
  return { answers: Object.fromEntries(Object.keys(question.questions).map((key) => [key, ok])) };
}

const holds = (writes: readonly unknown[], text: string) => JSON.stringify(writes).includes(text);
const asks = (writes: readonly [string, unknown][]) =>
  writes.some(([channel, value]) => channel === "__interrupt__" && [value].flat().some((one) => isRecord(one)));

async function run(job: TaskJob): Promise<void> {
  const die = () => process.kill(process.pid, "SIGKILL");
  const saver = await openSaver(job.saver);
  const putWrites = saver.putWrites.bind(saver);
  saver.putWrites = async (config, writes, taskId) => {
    const begins = holds(writes, '"resultType":"task"');
    const ends = holds(writes, "done") && !holds(writes, "messages");
    if (begins && job.point === "begun") die();
    if (ends && job.point === "before-checkpoint") die();
    await putWrites(config, writes, taskId);
    if (begins && job.point === "recorded") die();
    if (asks(writes as [string, unknown][]) && job.point === "after-question") die();
  };
  const { agent } = await startTaskAgent(job, saver);
  await runInteractive(agent, "go", { threadId: job.threadId, ask: yes });
  console.error(`the run came to its end without passing ${job.point}`);
  process.exit(3);
}

const given = process.env.TENON_TASK_AGENT;
if (given !== undefined) await run(JSON.parse(given) as TaskJob); // written by the test
