import { resolveModel } from "@tenon/agent";
import { openLines } from "@tenon/client/terminal";
import { openSigningKey, type SigningKey } from "@tenon/server/development";
import { openDesk } from "./agent/desk.ts";
import type { DeskContext } from "./agent/interceptors.ts";
import { openThreads } from "./agent/threads.ts";
import { mintedTokens, readTokenFile, type TokenSource, userOf } from "./agent/tokens.ts";
import { chat } from "./chat/chat.ts";
import type { DeskFlags } from "./flags.ts";
import { errorLog } from "./log-file.ts";
import { offlineRules } from "./offline/rules.ts";
import { reachServers } from "./run-servers.ts";
import { SERVER_NAMES, type ServerName } from "./servers/names.ts";
import { signingKeyPath } from "./servers/trust.ts";
import { stopOnSignals } from "./stop.ts";
import { textsFor } from "./texts/index.ts";

/** Who the desk acts for unless a given token is somebody else's. */
const USER: DeskContext = { userId: "user_zhangsan", userName: "张三" };
const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

/** Tokens a person brought: for each server from a file, else from the environment. */
function givenTokens(flags: DeskFlags): Partial<Record<ServerName, () => string>> {
  const files: Partial<Record<ServerName, string>> = {
    ...(flags.orderTokenFile !== undefined && { order: flags.orderTokenFile }),
    ...(flags.notificationTokenFile !== undefined && { notification: flags.notificationTokenFile }),
  };
  const given: Partial<Record<ServerName, () => string>> = {};
  for (const name of SERVER_NAMES) {
    const file = files[name];
    const token = process.env[`TENON_${name.toUpperCase()}_TOKEN`]?.trim();
    if (file !== undefined) given[name] = () => readTokenFile(file);
    else if (token) given[name] = () => token;
  }
  return given;
}

/** Where the tokens for each server come from. The desk's own stay on this machine: elsewhere nobody should get one from it. */
function tokensFor(
  urls: Readonly<Record<ServerName, string>>,
  given: Partial<Record<ServerName, () => string>>,
  key: SigningKey,
): Partial<Record<ServerName, TokenSource>> {
  const sources: Partial<Record<ServerName, TokenSource>> = {};
  for (const name of SERVER_NAMES) {
    const brought = given[name];
    if (brought) sources[name] = async () => brought();
    else if (LOOPBACK.test(new URL(urls[name]).hostname)) sources[name] = mintedTokens(key, name);
  }
  return sources;
}

/** `chat`: servers, agent and a conversation in the terminal or piped, until the person leaves. */
export async function runChat(flags: DeskFlags): Promise<void> {
  const t = textsFor(flags.lang);
  const stop = stopOnSignals();
  const model = await resolveModel(flags.model, {
    ...(flags.baseUrl && { baseUrl: flags.baseUrl }),
    ...(flags.model === "offline" && { offline: offlineRules(flags.lang) }),
  });
  const given = givenTokens(flags);
  const user = userOf(
    Object.values(given).map((token) => token()),
    USER,
  );
  const key = await openSigningKey(signingKeyPath(flags.data));
  const lines = openLines(process.stdin, process.stdout, () => stop.again());
  process.stdout.on("error", () => stop.abort()); // whoever read us is gone, for example `| head`
  const threads = openThreads(flags.data);
  const servers = await reachServers(flags, (line) => lines.notice(line));
  const desk = openDesk({
    urls: servers.urls,
    tokens: tokensFor(servers.urls, given, key),
    user,
    model,
    threads,
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
    await threads.close();
  }
}
