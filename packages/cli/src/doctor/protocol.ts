import { isRecord } from "@tenon/core";
import { LEGACY_REVISION, MODERN_REVISION } from "@tenon/core/internal";
import { type Channel, initializeParams, type Reply, type Speech } from "./channel.ts";
import { CODES } from "./codes.ts";
import { textOf } from "./json.ts";
import { Diagnosis, since, type Visit } from "./visit.ts";

/** Revisions of the older era that clients of today still speak. */
const LEGACY = [LEGACY_REVISION, "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];
/** The revisions that can be asked for. */
export const REVISIONS = [MODERN_REVISION, ...LEGACY];

/** A handshake that worked. */
export interface Session {
  readonly channel: Channel;
  readonly speech: Speech;
  readonly era: "modern" | "legacy";
  readonly capabilities: Readonly<Record<string, unknown>>;
  ask(method: string, params?: Record<string, unknown>): Promise<Reply>;
}

/** Part of the time that the first question gets before the second one is asked beside it. */
const PATIENCE = 0.35;
/** Part of the time from which on a handshake counts as slow. */
export const SLOW = 0.6;

const texts = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((one): one is string => typeof one === "string") : [];

/** What a reply says about revisions, when it says that ours is none of its own. */
function refusedVersions(reply: Reply | undefined): string | undefined {
  if (reply?.kind !== "error") return undefined;
  const { data, message, code } = reply;
  const supported = texts(isRecord(data) ? (data.supported ?? data.supportedVersions) : undefined);
  if (supported.length > 0) return `it speaks ${supported.join(", ")}`;
  return code === -32_022 || /protocol\s*-?version|unsupported (protocol|version)/i.test(message) ? message : undefined;
}

/** What a refusal says about the context of the contract. @throws Diagnosis if it does */
export function checkContextRefusal(visit: Visit, reply: Reply, what: string): void {
  if (reply.kind !== "error" || !isRecord(reply.data)) return;
  const { reason, field } = reply.data;
  const evidence = `${what}: ${reply.message} (${reply.code})`;
  if (reason === "missing_context_field") {
    visit.fail("context_missing_field", {
      evidence: `field ${textOf(field)}; ${evidence}`,
      fix: `send "${textOf(field)}" in the context of every request; check it with --context`,
    });
  }
  if (reason === "invalid_context_value")
    visit.fail("context_invalid", { evidence: `field ${textOf(field)}; ${evidence}` });
}

/** The versions in a discover result; undefined when it is none. */
function discovered(reply: Reply | undefined): readonly string[] | undefined {
  if (reply?.kind !== "result" || !Array.isArray(reply.value.supportedVersions)) return undefined;
  return texts(reply.value.supportedVersions);
}

const initialized = (reply: Reply | undefined): string | undefined =>
  reply?.kind === "result" && typeof reply.value.protocolVersion === "string" ? reply.value.protocolVersion : undefined;

/** The first reply that is a handshake; undefined when there is none among all. */
async function firstHandshake(replies: readonly Promise<Reply>[]): Promise<Reply | undefined> {
  const works = replies.map(async (one) => {
    const reply = await one;
    if (discovered(reply) === undefined && initialized(reply) === undefined) throw new Error("none");
    return reply;
  });
  return Promise.any(works).catch(() => undefined);
}

const after = <T>(ms: number, value: T): Promise<T> =>
  new Promise((resolve) => setTimeout(() => resolve(value), ms).unref());

function sessionOf(visit: Visit, channel: Channel, reply: Reply & { kind: "result" }, revision: string): Session {
  const modern = revision === MODERN_REVISION;
  const speech = { revision, modern };
  const { value } = reply;
  const meta = isRecord(value._meta) ? value._meta : {};
  const info = value.serverInfo ?? meta["io.modelcontextprotocol/serverInfo"];
  visit.facts.revision = revision;
  if (isRecord(info) && typeof info.name === "string") {
    visit.facts.server = visit.shown(`${info.name} ${typeof info.version === "string" ? info.version : ""}`, 80);
  }
  return {
    channel,
    speech,
    era: modern ? "modern" : "legacy",
    capabilities: isRecord(value.capabilities) ? value.capabilities : {},
    ask: (method, params = {}) => channel.ask(method, params, speech, visit.deadline.left()),
  };
}

/** Where a server says that the headers of a request are not what its body says: HeaderMismatch of 2026-07-28. */
const headersLost = (reply: Reply | undefined): string | undefined =>
  reply?.kind === "error" && reply.code === -32_020 ? `${reply.message} (${reply.code})` : undefined;

/** What all replies together mean when none is a handshake. @throws Diagnosis always */
async function explainNone(visit: Visit, replies: readonly Reply[]): Promise<never> {
  for (const reply of replies) {
    checkContextRefusal(visit, reply, "handshake");
    const lost = headersLost(reply);
    if (lost !== undefined) return visit.fail("headers_lost", { evidence: lost, severity: "error" });
    const versions = refusedVersions(reply);
    if (versions !== undefined) return visit.fail("version_mismatch", { evidence: versions });
  }
  const errors = replies.filter((reply) => reply.kind === "error");
  const other = errors.find(({ code }) => code !== -32_601) ?? errors[0];
  const last = replies.findLast((reply) => reply.kind === "none" && !reply.silent) ?? replies.at(-1);
  if (!other) {
    if (last?.kind === "none") return last.explain();
    return visit.fail("not_mcp", { evidence: "its answer to the handshake has neither revision nor capabilities" });
  }
  const evidence = `${other.message} (${other.code})`;
  if (other.code === -32_601) return visit.fail("not_mcp", { evidence });
  const mangled = other.code === -32_700 && {
    fix: "the request was JSON when it left here: have what stands in between pass its body on as it is",
  };
  return visit.fail("handshake_refused", { evidence, ...mangled });
}

function mismatch(visit: Visit, theirs: readonly string[], ours: readonly string[]): never {
  return visit.fail("version_mismatch", {
    evidence: `the server speaks ${theirs.join(", ") || "none"}; asked for ${ours.join(", ")}`,
  });
}

/** A server that refuses the one revision that is asked for may speak another. */
export async function shakeHands(visit: Visit, channel: Channel): Promise<Session> {
  const { revision, ...others } = visit.options;
  try {
    return await agree(visit, channel);
  } catch (error) {
    const mayBe = error instanceof Diagnosis && CODES[error.finding.code].layer === "protocol";
    if (revision === undefined || !mayBe || error.finding.code === "headers_lost") throw error;
    const session = await agree({ ...visit, options: others }, channel).catch(() => undefined);
    if (!session) throw error;
    return mismatch(visit, [session.speech.revision], [revision]);
  }
}

/**
 * Finds the revision that both sides speak: the newer one first; the older one as soon as the answer is none, or beside it when
 * nothing comes.
 * @throws Diagnosis
 */
async function agree(visit: Visit, channel: Channel): Promise<Session> {
  const began = performance.now();
  const { revision } = visit.options;
  const left = () => visit.deadline.left();
  const wanted = revision === undefined ? REVISIONS : [revision];
  const asked: Promise<Reply>[] = [];
  const modern = { revision: MODERN_REVISION, modern: true };
  const legacy = { revision: revision ?? LEGACY_REVISION, modern: false };
  if (wanted.includes(MODERN_REVISION)) {
    asked.push(channel.ask("server/discover", {}, modern, left()));
  }
  const early = asked[0] && (await Promise.race([asked[0], after(visit.deadline.totalMs * PATIENCE, undefined)]));
  if (early?.kind === "none" && early.final) return early.explain();
  if (early) checkContextRefusal(visit, early, "server/discover");
  const onlyModern = revision === MODERN_REVISION;
  if (discovered(early) === undefined && !onlyModern) {
    asked.push(channel.ask("initialize", initializeParams(legacy.revision), legacy, left()));
  }
  const reply = await firstHandshake(asked);
  visit.facts.latency.handshake = since(began);
  if (reply?.kind !== "result") return explainNone(visit, await Promise.all(asked));
  const lost = headersLost(early);
  // the older revision works without them, so that nobody notices what is lost with the newer one
  if (lost !== undefined) visit.note("headers_lost", { evidence: `${lost}; clients fall back to an older revision` });
  const versions = discovered(reply);
  if (versions?.includes(MODERN_REVISION)) return sessionOf(visit, channel, reply, MODERN_REVISION);
  const chosen = initialized(reply);
  if (versions) {
    // it can be discovered, and speaks the older revisions only
    const common = LEGACY.find((one) => versions.includes(one) && wanted.includes(one));
    if (common === undefined || onlyModern) return mismatch(visit, versions, wanted);
    const second = await channel.ask(
      "initialize",
      initializeParams(common),
      { revision: common, modern: false },
      left(),
    );
    if (second.kind !== "result" || initialized(second) === undefined) return explainNone(visit, [second]);
    return greeted(sessionOf(visit, channel, second, initialized(second) ?? common));
  }
  if (chosen === undefined || !LEGACY.includes(chosen) || !wanted.includes(chosen)) {
    return mismatch(visit, chosen === undefined ? [] : [chosen], wanted);
  }
  return greeted(sessionOf(visit, channel, reply, chosen));
}

/** The older revision wants to be told that the handshake is over. */
async function greeted(session: Session): Promise<Session> {
  await session.channel.notify("notifications/initialized", session.speech);
  return session;
}
