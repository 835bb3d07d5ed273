import { CAPABILITY_OF, type ContractDeclaration } from "@tenon/core/contract";
import type { Reply } from "./channel.ts";
import { checkContextRefusal, type Session } from "./protocol.ts";
import { since, type Visit } from "./visit.ts";

/** Pages and tools that a list may have before it counts as endless. */
const MAX_PAGES = 200;
const MAX_TOOLS = 10_000;
const METHOD_NOT_FOUND = -32_601;

async function explain(visit: Visit, reply: Reply, method: string): Promise<never> {
  checkContextRefusal(visit, reply, method);
  if (reply.kind === "none") return reply.explain();
  if (reply.kind === "error") {
    const evidence = `${method}: ${reply.message} (${reply.code})`;
    return visit.fail(reply.code === METHOD_NOT_FOUND ? "drift" : "list_failed", { evidence });
  }
  return visit.fail("list_failed", { evidence: `${method}: the answer holds no list` });
}

async function allTools(visit: Visit, session: Session): Promise<readonly unknown[]> {
  const tools: unknown[] = [];
  const seen = new Set<string>();
  let cursor: string | undefined;
  for (let page = 1; ; page++) {
    const reply = await session.ask("tools/list", cursor === undefined ? {} : { cursor });
    if (page > 1 && reply.kind === "none" && reply.silent) {
      return visit.fail("list_failed", { evidence: `tools/list: ${page - 1} pages took all the time there is` });
    }
    if (reply.kind !== "result" || !Array.isArray(reply.value.tools)) return explain(visit, reply, "tools/list");
    // one by one: there may be more than a call takes arguments
    for (const tool of reply.value.tools) tools.push(tool);
    const next = reply.value.nextCursor;
    if (typeof next !== "string") return tools;
    const shown = JSON.stringify(next.slice(0, 60));
    if (seen.has(next))
      return visit.fail("paging_loop", { evidence: `cursor ${shown} came again after ${page} pages` });
    if (page >= MAX_PAGES || tools.length > MAX_TOOLS) {
      return visit.fail("paging_loop", { evidence: `${page} pages and no end; the last cursor was ${shown}` });
    }
    seen.add(next);
    cursor = next;
  }
}

/** Whether a list that was announced is there. */
async function checkList(visit: Visit, session: Session, method: string): Promise<void> {
  const reply = await session.ask(method);
  if (reply.kind === "error" && reply.code === METHOD_NOT_FOUND) {
    visit.note("drift", { evidence: `${method}: ${reply.message} (${reply.code})` });
  }
}

/**
 * Fetches the list of tools, and looks whether the other announced lists are there.
 * @returns the raw definitions
 * @throws Diagnosis
 */
export async function fetchLists(
  visit: Visit,
  session: Session,
  declaration: ContractDeclaration | undefined,
): Promise<readonly unknown[]> {
  const { capabilities } = session;
  const began = performance.now();
  /** Announced, and not left out of a contract: what is not in it must not be asked. */
  const isOffered = (kind: "tools" | "resources" | "prompts"): boolean =>
    capabilities[kind] !== undefined && (declaration?.capabilities.includes(CAPABILITY_OF[`${kind}/list`]) ?? true);
  const others = (["resources", "prompts"] as const)
    .filter(isOffered)
    .map((kind) => checkList(visit, session, `${kind}/list`));
  // they are notes beside the tools, whatever becomes of those
  const rest = Promise.allSettled(others);
  if (!isOffered("tools")) {
    await rest;
    return [];
  }
  const tools = await allTools(visit, session);
  visit.facts.latency.list = since(began);
  await rest;
  visit.facts.tools = tools.length;
  const executes = declaration?.capabilities.includes("tools.execute") === true;
  if (executes && tools.length === 0) {
    visit.note("contract_drift", { severity: "warning", evidence: "tools.execute, and the list of tools is empty" });
  }
  return tools;
}
