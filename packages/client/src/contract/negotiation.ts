import { type DiscoverResult, SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { isRecord, META, messageOf, TenonError } from "@tenon/core";
import { countNegotiation } from "@tenon/core/internal";
import type { Connection, ConnectionHooks } from "../connection/connection.ts";
import { ANY_RESULT } from "../connection/exchange.ts";
import { causes, refusalCode } from "../connection/failure.ts";
import type { ServerConfig } from "../types/servers.ts";
import { acceptContract } from "./accepted.ts";
import { type Asked, VersionRefused } from "./asked.ts";
import { judge, loadContract, type Terms, termsOf } from "./judge.ts";
import { type Agreed, type Answer, climb, type Ladder } from "./ladder.ts";
import { STEP_MS, type Step, stepsFor } from "./steps.ts";

/** Milliseconds before the end of a connection's time at which its last step ends: so the step tells, and not the clock. */
const MARGIN_MS = 20;

/** What a client without wishes of its own takes. */
const UNCONFIGURED = {};

/** Where a server of either revision announces its contract. */
function announcedIn(capabilities: unknown): unknown {
  if (!isRecord(capabilities)) return undefined;
  for (const part of [capabilities.extensions, capabilities.experimental]) {
    if (isRecord(part) && Object.hasOwn(part, META.context)) return part[META.context];
  }
  return undefined;
}

const answerOf = (connection: Connection): Answer<Connection> => ({
  value: connection,
  announced: announcedIn(connection.sdk.getServerCapabilities()),
});

async function termsFor(server: string, config: ServerConfig): Promise<Terms> {
  return termsOf(await loadContract(), server, config.contract ?? UNCONFIGURED);
}

/** How asking failed where the next step is worth a try; undefined where it is not: nobody is there, or it is a matter of credentials. */
function failing(error: unknown): ReturnType<NonNullable<Ladder<unknown>["failing"]>> {
  if (refusalCode(error) !== undefined) return undefined;
  for (const cause of causes(error)) {
    if (cause instanceof VersionRefused)
      return { outcome: "refused", reason: `the server refused it: ${cause.message}` };
    if (cause instanceof TenonError) return undefined;
  }
  if (SdkHttpError.isInstance(error)) {
    const { status } = error.data;
    return status >= 500 ? { outcome: "failed", reason: `HTTP ${status}` } : undefined;
  }
  if (!SdkError.isInstance(error)) return undefined;
  if (error.code === SdkErrorCode.RequestTimeout) return { outcome: "late" };
  return error.code === SdkErrorCode.EraNegotiationFailed ? { outcome: "failed", reason: messageOf(error) } : undefined;
}

async function putInForce(
  connection: Connection,
  terms: Terms,
  { declaration, step }: Agreed<unknown>,
  protocol: unknown = connection.sdk.getServerCapabilities(),
): Promise<void> {
  const how = { signed: terms.ring !== undefined, asked: step.meta, protocol };
  connection.contract = declaration && acceptContract(await loadContract(), terms.server, declaration, how);
}

/** Counts how a negotiation ended, and tells the program. */
const telling =
  ({ onContract }: ConnectionHooks): Ladder<unknown>["tell"] =>
  (event, result) => {
    countNegotiation("client", result);
    onContract?.(event);
  };

/** Whether every step is a request of its own: over HTTP, to a server whose contract matters to this client. */
export function climbsAnew(config: ServerConfig): boolean {
  return "url" in config && config.contract !== undefined;
}

const isVersionRefused = (error: unknown): boolean => [...causes(error)].some((one) => one instanceof VersionRefused);

/**
 * Opens a connection that may take its time, such as to a process that starts. It is opened again, asking for less, only where the
 * server refuses the version; which answer will do is found out afterwards (`settleContract`).
 */
export async function openAsking<T>(config: ServerConfig, open: (asked: Asked | undefined) => Promise<T>): Promise<T> {
  if (config.contract === undefined) return open(undefined);
  let refused: unknown;
  for (const { meta } of stepsFor(true)) {
    try {
      return await open({ meta });
    } catch (error) {
      if (!isVersionRefused(error)) throw error;
      refused = error;
    }
  }
  throw refused;
}

/** Whether a description that is remembered will do, so that nothing has to be asked: its contract must still be believed. */
export async function isBelieved(server: string, config: ServerConfig, discover: DiscoverResult): Promise<boolean> {
  const announced = announcedIn(discover.capabilities);
  if (announced === undefined && config.contract === undefined) return true;
  const terms = await termsFor(server, config);
  const core = await loadContract();
  const verdicts = stepsFor(terms.plain).map((step) => judge(core, terms, step, announced));
  if (verdicts.some(({ kind }) => kind === "final")) return false;
  const good = verdicts.find((verdict) => verdict.kind === "accepted");
  const next = good?.declaration?.next_rotation_time;
  return good !== undefined && (next === undefined || Date.parse(next) > Date.now());
}

/**
 * Opens a connection to a server over HTTP step by step, each with a request and a budget of its own. The accepted answer is the
 * connection: it costs no further request.
 * @param until milliseconds since 1970 at which the last step ends
 */
export async function openStepwise<T extends { readonly connection: Connection }>(
  {
    server,
    config,
    hooks,
    until,
  }: { server: string; config: ServerConfig; hooks: ConnectionHooks; until: () => number },
  open: (asked: Asked) => Promise<T>,
  close: (connection: Connection) => void,
): Promise<T> {
  const terms = await termsFor(server, config);
  const opened = new Map<Connection, T>();
  const ask = async ({ meta }: Step): Promise<Answer<Connection>> => {
    const limitMs = Math.min(STEP_MS, until() - Date.now() - MARGIN_MS);
    if (limitMs <= 0) throw new SdkError(SdkErrorCode.EraNegotiationFailed, "connectTimeoutMs is over");
    const made = await open({ meta, limitMs });
    opened.set(made.connection, made);
    return answerOf(made.connection);
  };
  const agreed = await climb<Connection>({ terms, ask, discard: close, failing, tell: telling(hooks) });
  await putInForce(agreed.value, terms, agreed);
  return opened.get(agreed.value) as T; // it was put there by `ask`
}

/** Asks over a connection that is open. */
function asking(connection: Connection): (step: Step) => Promise<Answer<unknown>> {
  return async ({ meta }) => {
    const request = { method: "server/discover", params: { _meta: meta } } as const;
    const result = await connection.exchange({}, () =>
      connection.sdk.request(request, ANY_RESULT, { timeout: STEP_MS }),
    );
    return { value: result.capabilities, announced: announcedIn(result.capabilities) };
  };
}

/**
 * Agrees on a contract over a connection that is open already: the answer that opened it is looked at first; a server that can be
 * asked again over the same connection, and only that, is.
 * @param remembered nothing was asked: it is what was known, and not worth telling
 * @throws ContractError
 */
export async function settleContract(
  server: string,
  connection: Connection,
  hooks: ConnectionHooks,
  remembered: boolean,
): Promise<void> {
  const { config } = connection;
  const given: Answer<unknown> = { ...answerOf(connection), value: undefined };
  if (given.announced === undefined && config.contract === undefined) return;
  const terms = await termsFor(server, config);
  const tell = remembered ? () => {} : telling(hooks);
  const again = connection.era === "modern" && config.contract !== undefined && !remembered;
  const ask = again ? { ask: asking(connection), failing: failingOver } : {};
  const agreed = await climb<unknown>({ terms, given, ...ask, tell });
  await putInForce(connection, terms, agreed, agreed.value);
}

/** The same over a connection that is open: whoever answers with an error may answer the next step. */
function failingOver(error: unknown): ReturnType<typeof failing> {
  const known = failing(error);
  if (known) return known;
  const refused = isRecord(error) && isRecord(error.data) && typeof error.data.reason === "string";
  return refused ? { outcome: "refused", reason: `the server refused it: ${messageOf(error)}` } : undefined;
}

/**
 * Asks for a server's declaration anew, when the time of the present one is over.
 * @throws ContractError for one that is not believed; whatever asking threw
 */
export async function renewContract(server: string, connection: Connection, hooks: ConnectionHooks): Promise<void> {
  const terms = await termsFor(server, connection.config);
  const agreed = await climb<unknown>({
    // a server that had a contract has one
    terms: { ...terms, plain: false },
    ask: asking(connection),
    failing: failingOver,
    tell: telling(hooks),
  });
  await putInForce(connection, terms, agreed, agreed.value);
}
