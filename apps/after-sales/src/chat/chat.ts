import { type EndState, openQuestions, type RunnableAgent, type StreamOptions, streamInteractive } from "@tenon/agent";
import { type Lines, terminalTexts } from "@tenon/client/terminal";
import { cleanText as clean, isRecord } from "@tenon/core";
import type { Desk } from "../agent/desk.ts";
import type { AuditLine } from "../agent/interceptors.ts";
import type { Threads } from "../agent/threads.ts";
import type { ServerName } from "../servers/names.ts";
import type { Texts } from "../texts/index.ts";
import { askPerson } from "./ask.ts";
import { interpret } from "./commands.ts";
import { createRenderer, reasonOf } from "./render.ts";

export interface ChatOptions {
  desk: Desk;
  threads: Threads;
  lines: Lines;
  texts: Texts;
  threadId: string;
  /** How the model is called in the greeting. */
  model: string;
  /** Hears of errors of which the person is told only a reference. */
  onError: NonNullable<StreamOptions["onError"]>;
  /** Ends the conversation; what is open stays open. */
  signal: AbortSignal;
}

/** Bytes of one message: far above what people type, far below what hurts a model. */
const MESSAGE_BYTES = 32 * 1024;
/** Length of one value on the screen: a person must see what they decide, and nobody but this process holds the events. */
const MAX_TEXT = 1024 * 1024;

function auditOf(values: unknown): readonly AuditLine[] {
  const lines = isRecord(values) ? values.auditLog : undefined;
  return Array.isArray(lines) ? lines : [];
}

/** Talks with a person until they leave, the input ends, or `signal` fires. */
export async function chat(options: ChatOptions): Promise<void> {
  const { desk, threads, lines, texts: t, threadId, signal } = options;
  const serverTitle = (server: string): string => t.offline.serverNames[server] ?? clean(server);
  const waiting = (server: string): string => {
    const gap = desk.gaps().get(server as ServerName); // the client knows no others
    return gap?.kind === "refused" ? `${gap.text} ${t.chat.stillWaits}` : t.chat.waits(serverTitle(server));
  };
  const render = createRenderer(lines.write, { t, threadId, serverTitle, waiting });
  /** What was said last about a server that does not give everything. */
  const told = new Map<ServerName, string>();
  const texts = terminalTexts(t.lang, { leave: t.chat.formActions });
  let left = false;
  const leave = (): void => {
    left = true;
  };

  /** Says when a server went away, keeps something from the user, or gives everything again: once each. */
  function reportServers(): void {
    for (const { server: name, error } of desk.servers()) {
      const server = name as ServerName; // the client knows no others
      const gap = desk.gaps().get(server);
      if (gap === undefined) {
        if (told.delete(server)) lines.write(`${t.chat.serverUp(serverTitle(server))}\n`);
      } else if (told.get(server) !== gap.text) {
        told.set(server, gap.text);
        const down = gap.kind === "down";
        const line = down
          ? t.chat.serverDown(serverTitle(server), clean(error?.message ?? "?"))
          : t.chat.note(gap.text);
        lines.write(`${clean(line)}\n`);
      }
    }
  }

  async function stateOf(agent: RunnableAgent) {
    return agent.getState({ configurable: { thread_id: threadId } });
  }

  /** One turn: the message (or what is open), the questions it raises, the reply, the audit lines. */
  async function turn(agent: RunnableAgent, message: string | undefined): Promise<void> {
    const before = auditOf((await stateOf(agent)).values).length;
    let failed = false;
    let waits = false;
    let end: EndState | undefined;
    for await (const event of streamInteractive(agent, message, {
      threadId,
      context: desk.user,
      signal,
      leases: threads.leases,
      lease: threads.lease,
      maxTextChars: MAX_TEXT,
      onError: options.onError,
      ask: (question) => askPerson(question, { lines, texts, signal, serverTitle, leave, bareWords: true }),
    })) {
      render.event(event);
      if (event.type === "error") failed = event.error.code !== "superseded";
      if (event.type === "error") waits = event.error.code === "call_waits";
      if (event.type === "end") end = event.state;
    }
    if (end === "aborted") return;
    if (waits && message !== undefined) lines.write(`${t.chat.notTaken}\n`); // what waits goes first
    if (end === "waiting" && !failed) lines.write(`${t.chat.paused}\n`);
    render.audit(auditOf((await stateOf(agent)).values).slice(before));
  }

  lines.write(`${t.chat.welcome(clean(options.model), clean(threadId))}\n`);
  if (options.model === "offline") lines.write(`${t.chat.offlineNotice}\n`);
  const first = await desk.agent();
  reportServers();
  const open = await stateOf(first);
  if (open.tasks.length > 0) {
    const asked = (await openQuestions(first, threadId)).length > 0;
    lines.write(`${asked ? t.chat.pending : t.chat.resumed}\n`);
    await turn(first, undefined);
  }

  while (!signal.aborted && !left) {
    const line = await lines.next(`\n${t.chat.prompt}`, signal);
    if (line === undefined) break;
    if (line.trim() === "") {
      lines.write(`${t.chat.empty}\n`);
      continue;
    }
    const bytes = Buffer.byteLength(line);
    if (bytes > MESSAGE_BYTES) {
      lines.write(`${t.chat.tooLong(bytes, MESSAGE_BYTES)}\n`);
      continue;
    }
    try {
      const agent = await desk.agent();
      reportServers();
      const spoken = await interpret(line, desk, t, {
        write: lines.write,
        audit: async () => auditOf((await stateOf(agent)).values),
        showAudit: render.audit,
        serverTitle,
      });
      if ("quit" in spoken) break;
      if ("done" in spoken) lines.write(spoken.done && `${spoken.done}\n`);
      else await turn(agent, spoken.message);
    } catch (error) {
      if (!signal.aborted) lines.write(`${t.chat.turnFailed(reasonOf(error))}\n`);
    }
  }
  lines.write(`\n${t.chat.bye}\n`);
}
