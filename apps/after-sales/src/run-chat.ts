import { resolveModel } from "@tenon/agent";
import { openLines } from "@tenon/client/terminal";
import { openSigningKey } from "@tenon/server/development";
import { openAudit } from "./agent/audit.ts";
import { openDesk } from "./agent/desk.ts";
import type { DeskContext } from "./agent/interceptors.ts";
import { openThreads } from "./agent/threads.ts";
import { givenTokens, tokensFor } from "./agent/token-sources.ts";
import { userOf } from "./agent/tokens.ts";
import { chat } from "./chat/chat.ts";
import { type DeskFlags, placeOf } from "./flags.ts";
import { errorLog } from "./log-file.ts";
import { offlineRules } from "./offline/rules.ts";
import { reachServers } from "./run-servers.ts";
import { signingKeyPath } from "./servers/trust.ts";
import { stopOnSignals } from "./stop.ts";
import { openTelemetry } from "./telemetry.ts";
import { textsFor } from "./texts/index.ts";

/** Who the desk acts for unless a given token is somebody else's. */
const USER: DeskContext = { userId: "user_zhangsan", userName: "张三" };

/** `chat`: servers, agent and a conversation in the terminal or piped, until the person leaves. */
export async function runChat(flags: DeskFlags): Promise<void> {
  const t = textsFor(flags.lang);
  const stop = stopOnSignals();
  const model = await resolveModel(flags.model, {
    ...(flags.baseUrl && { baseUrl: flags.baseUrl }),
    ...(flags.model === "offline" && { offline: offlineRules(flags.lang) }),
  });
  const given = givenTokens({ order: flags.orderTokenFile, notification: flags.notificationTokenFile }, process.env);
  const user = userOf(
    Object.values(given).map((token) => token()),
    USER,
  );
  const key = await openSigningKey(signingKeyPath(flags.data));
  const lines = openLines(process.stdin, process.stdout, () => stop.again());
  process.stdout.on("error", () => stop.abort()); // whoever read us is gone, for example `| head`
  const telemetry = await openTelemetry("after-sales-agent", flags);
  const threads = await openThreads(placeOf(flags));
  const audit = await openAudit(placeOf(flags));
  const servers = await reachServers(flags, (line) => lines.notice(line));
  const desk = openDesk({
    urls: servers.urls,
    tokens: tokensFor(servers.urls, given, key),
    user,
    model,
    threads,
    audit,
    texts: t,
  });
  try {
    await chat({
      desk,
      threads,
      lines,
      texts: t,
      threadId: flags.thread,
      model: flags.model,
      onError: errorLog(flags.data),
      signal: stop.signal,
    });
  } finally {
    lines.close();
    await desk.close();
    await servers.close();
    await audit.close();
    await threads.close();
    await telemetry?.close();
  }
}
