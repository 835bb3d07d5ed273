import type { HttpServerConfig, StdioServerConfig } from "@tenon/client";
import { Pools, placeOf, proxyFor, secretsOf, shownAddress } from "@tenon/client/internal";
import { messageOf } from "@tenon/core";
import { type Channel, httpChannel, type Wire } from "./channel.ts";
import type { Code } from "./codes.ts";
import { compare, type Examination } from "./compare.ts";
import { checkContract, withContract } from "./contract.ts";
import { fetchLists } from "./lists.ts";
import { type Place, reach, throughProxy } from "./net.ts";
import { type Session, SLOW, shakeHands } from "./protocol.ts";
import { isSse } from "./sse.ts";
import { stdioChannel } from "./stdio.ts";
import { checkTls } from "./tls.ts";
import { checkTools } from "./tools.ts";
import {
  Diagnosis,
  type ExamOptions,
  type Facts,
  type Finding,
  since,
  startDeadline,
  startVisit,
  type Target,
  type Visit,
} from "./visit.ts";

/** What was found at one server. */
export interface TargetReport {
  /** Its configured name, or its address or command where it has none. */
  readonly target: string;
  readonly ok: boolean;
  /** `sse` is the transport of 2024; null where no handshake worked. */
  readonly era: "modern" | "legacy" | "sse" | null;
  /** Milliseconds that its examination took. */
  readonly ms: number;
  readonly findings: readonly Finding[];
  readonly facts: Readonly<Facts>;
}

/** What was found at all of them. */
export interface Report {
  /** Whether there is no error; warnings are none. */
  readonly ok: boolean;
  readonly targets: readonly TargetReport[];
}

/** Milliseconds for everything, unless said otherwise: with the start of the program and its end under 5 s. */
export const DEFAULT_TIMEOUT_MS = 4_000;
/** Milliseconds for a token from its authorization server. */
const CREDENTIAL_MS = 1_500;

/** Findings that a server of the first revision causes at the endpoint of its stream. */
const MAY_BE_SSE: readonly Code[] = [
  "wrong_path",
  "wrong_method",
  "not_acceptable",
  "content_type_refused",
  "http_refused",
  "server_error",
];

interface Examined {
  readonly era: TargetReport["era"];
  /** Names of its tools. */
  readonly tools: readonly string[];
  /** Why the examination ended early. */
  readonly diagnosis?: Diagnosis;
}

function placeAt(url: URL, { socketPath }: HttpServerConfig): Place {
  if (socketPath !== undefined) return { path: socketPath };
  const host = url.hostname.replace(/^\[|\]$/g, "");
  return { host, port: Number(url.port || (url.protocol === "https:" ? 443 : 80)) };
}

/** The headers that go with every request, and the token in them. @throws Diagnosis */
async function credentialsFor(
  visit: Visit,
  url: URL,
  config: HttpServerConfig,
): Promise<{ headers: Record<string, string>; token: string | undefined }> {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries({ ...config.headers, ...visit.options.headers })) {
    headers[name.toLowerCase()] = value;
  }
  visit.secrets.push(
    ...secretsOf(headers),
    ...Object.values(visit.options.headers ?? {}).filter((one) => one.length > 5),
  );
  if (headers.authorization === undefined && config.auth !== undefined) {
    const ended = visit.deadline.within(CREDENTIAL_MS);
    try {
      const given = config.auth.open({ server: visit.target.name, config, signal: ended });
      const late = new Promise<never>((_, reject) => {
        ended.addEventListener("abort", () => reject(new Error("no token in time")), { once: true });
      });
      const credential = await Promise.race([given.credential(), late]);
      if (credential) {
        visit.secrets.push(credential.token);
        Object.assign(headers, await credential.headers("POST", url));
      }
    } catch (error) {
      return visit.fail("auth_credential", { evidence: messageOf(error) });
    }
  }
  const [, token] = /^(?:bearer|dpop)\s+(\S+)/i.exec(headers.authorization ?? headers.Authorization ?? "") ?? [];
  if (token !== undefined) visit.secrets.push(token);
  return { headers, token };
}

/** Contract and lists, once hands are shaken: the era is known whatever is wrong then. */
async function examineSession(visit: Visit, session: Session): Promise<Examined> {
  const { era } = session;
  try {
    const declaration = checkContract(visit, session);
    const tools = await fetchLists(visit, session, declaration);
    return { era, tools: checkTools(visit, tools) };
  } catch (error) {
    if (error instanceof Diagnosis) return { era, tools: [], diagnosis: error };
    throw error;
  }
}

/** A server of the first revision: the client knows how to speak with it. */
async function examineSse(visit: Visit, config: HttpServerConfig, headers: Record<string, string>): Promise<Examined> {
  visit.note("sse_only", { evidence: "GET is answered by an event stream that names an endpoint" });
  const { createClient } = await import("@tenon/client");
  const server = "server";
  const { auth: _auth, ...rest } = config;
  const client = createClient({
    servers: { [server]: { ...rest, headers, connectTimeoutMs: Math.max(500, visit.deadline.left() - 300) } },
  });
  try {
    const tools = await client.listTools();
    const [info] = client.servers();
    if (info?.error) visit.fail("list_failed", { evidence: info.error.message });
    if (info?.revision !== undefined) visit.facts.revision = info.revision;
    visit.facts.tools = tools.length;
    const raw = tools.map(({ wireName, inputSchema }) => ({ name: wireName, inputSchema }));
    return { era: "sse", tools: checkTools(visit, raw) };
  } finally {
    await client.close();
  }
}

async function examineHttp(visit: Visit, config: HttpServerConfig, pools: Pools): Promise<Examined> {
  const url = new URL(config.url);
  const { password, username, hostname, protocol } = url;
  visit.secrets.push(...[password, username, ...url.searchParams.values()].filter((one) => one.length > 2));
  const place = placeAt(url, config);
  const route = pools.route(config);
  const proxy = route.proxy === undefined ? undefined : proxyFor(url, process.env);
  if (route.proxy !== undefined) visit.facts.proxy = route.proxy;
  const socket = proxy === undefined ? await reach(visit, place) : await throughProxy(visit, new URL(proxy), url);
  try {
    const host = hostname.replace(/^\[|\]$/g, "");
    if (socket && protocol === "https:") await checkTls(visit, socket, { host, ca: config.ca });
  } finally {
    socket?.destroy();
  }
  const { headers, token } = await credentialsFor(visit, url, config);
  const channel = httpChannel({ visit, route, place, headers, token }, url);
  try {
    const session = await handsOrStream(visit, channel, channel.wire, url);
    if (session === "sse") return await examineSse(visit, config, headers);
    const { handshake = 0 } = visit.facts.latency;
    if (handshake > visit.deadline.totalMs * SLOW) visit.note("slow_answer", { evidence: `handshake ${handshake} ms` });
    return await examineSession(visit, session);
  } finally {
    await channel.close();
  }
}

async function handsOrStream(visit: Visit, channel: Channel, wire: Wire, url: URL): Promise<Session | "sse"> {
  try {
    return await shakeHands(visit, channel);
  } catch (error) {
    const mayBe = error instanceof Diagnosis && MAY_BE_SSE.includes(error.finding.code);
    if (mayBe && (await isSse(wire, url))) return "sse";
    throw error;
  }
}

/** What a command's own line hides of its arguments, so that its last words do not show it either. */
function hiddenArguments(config: StdioServerConfig): string[] {
  const shown = placeOf(config);
  return (config.args ?? [])
    .filter((arg) => !shown.includes(arg))
    .map((arg) => arg.replace(/^--?[\w-]+=/, ""))
    .filter((arg) => arg.length > 5);
}

async function examineProcess(visit: Visit, config: StdioServerConfig): Promise<Examined> {
  visit.secrets.push(...secretsOf(config.env ?? {}), ...hiddenArguments(config));
  const channel = stdioChannel(visit, config);
  try {
    const session = await shakeHands(visit, channel);
    const examined = await examineSession(visit, session);
    channel.check();
    return examined;
  } finally {
    await channel.close();
  }
}

async function examineOne(target: Target, options: ExamOptions, pools: Pools): Promise<Examination> {
  const began = performance.now();
  const visit = startVisit(
    target,
    withContract(options, target.config),
    startDeadline(options.timeoutMs ?? DEFAULT_TIMEOUT_MS),
  );
  let examined: Examined = { era: null, tools: [] };
  try {
    const { config } = target;
    if ("url" in config) examined = await examineHttp(visit, config, pools);
    else if ("command" in config) examined = await examineProcess(visit, config);
    else visit.fail("transport_unknown", { evidence: "a transport of the program's own" });
  } catch (error) {
    if (!(error instanceof Diagnosis)) throw error;
    examined = { ...examined, diagnosis: error };
  }
  const { era, tools, diagnosis } = examined;
  // what was followed is nothing beside a redirect that leads nowhere
  const noted = visit.findings.filter(({ code }) => diagnosis?.code !== "redirect" || code !== "redirect_followed");
  const findings = [...(diagnosis ? [diagnosis.finding] : []), ...noted];
  const report: TargetReport = {
    target: visit.shown(target.name, 200),
    ok: !findings.some(({ severity }) => severity === "error"),
    era,
    ms: since(began),
    findings,
    facts: visit.facts,
  };
  const names = visit.facts.tools === undefined ? undefined : new Set(tools.map((name) => visit.shown(name, 140)));
  return { target, report, ...(names && { tools: names }) };
}

/** How a server that has no name is called. */
export const nameOf = (config: Target["config"]): string =>
  "url" in config ? shownAddress(config.url) : placeOf(config);

/**
 * Examines servers side by side and says what keeps clients from working with them. Calls no tool, and changes nothing there but
 * opening and closing a session.
 * @returns within `timeoutMs` and half a second, whatever the servers do
 */
export async function examine(targets: readonly Target[], options: ExamOptions = {}): Promise<Report> {
  const pools = new Pools();
  try {
    const all = await Promise.all(targets.map((target) => examineOne(target, options, pools)));
    const reports = compare(all, options.plainNames === true);
    return { ok: reports.every(({ ok }) => ok), targets: reports };
  } finally {
    await pools.close();
  }
}
