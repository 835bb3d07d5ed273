import { resolveModel } from "@tenon/agent";
import { openLines } from "@tenon/client/terminal";
import { openDesk } from "./agent/desk.ts";
import { openThreads } from "./agent/threads.ts";
import { chat } from "./chat/chat.ts";
import type { DeskFlags } from "./flags.ts";
import { errorLog } from "./log-file.ts";
import { offlineRules } from "./offline/rules.ts";
import { reachServers } from "./run-servers.ts";
import { stopOnSignals } from "./stop.ts";
import { textsFor } from "./texts/index.ts";

/** The one user of the desk until it has tokens: who the agent acts for. */
const USER = { userId: "user_zhangsan", userName: "张三" };

/** `chat`: servers, agent and a conversation in the terminal or piped, until the person leaves. */
export async function runChat(flags: DeskFlags): Promise<void> {
  const t = textsFor(flags.lang);
  const stop = stopOnSignals();
  const model = await resolveModel(flags.model, {
    ...(flags.baseUrl && { baseUrl: flags.baseUrl }),
    ...(flags.model === "offline" && { offline: offlineRules(flags.lang) }),
  });
  const lines = openLines(process.stdin, process.stdout, () => stop.again());
  process.stdout.on("error", () => stop.abort()); // whoever read us is gone, for example `| head`
  const threads = openThreads(flags.data);
  const servers = await reachServers(flags, (line) => lines.notice(line));
  const desk = openDesk({ urls: servers.urls, model, threads, texts: t });
  try {
    await chat({
      desk,
      threads,
      lines,
      texts: t,
      threadId: flags.thread,
      user: USER,
      model: flags.model,
      onError: errorLog(flags.data),
      signal: stop.signal,
    });
  } finally {
    lines.close();
    await desk.close();
    await servers.close();
    await threads.close();
  }
}
