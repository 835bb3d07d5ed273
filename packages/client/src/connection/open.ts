import { existsSync } from "node:fs";
import { SdkError, SdkErrorCode, SdkHttpError } from "@modelcontextprotocol/client";
import { ConnectionError, ContractError } from "@tenon/core";
import { Refusal } from "../auth/refusal.ts";
import type { AuthSession } from "../auth/types.ts";
import type { Asked } from "../contract/asked.ts";
import { climbsAnew, isBelieved, openAsking, openStepwise, settleContract } from "../contract/negotiation.ts";
import type { EndpointConfig } from "../types/servers.ts";
import { Connection, type ConnectionHooks } from "./connection.ts";
import { withSignal } from "./deadline.ts";
import { classify, HANDSHAKE, refusalCode, unreachable } from "./failure.ts";
import { placeOf } from "./place.ts";
import type { Verdict } from "./verdicts.ts";

/** Statuses by which a server says that it knows no Streamable HTTP (revision 2025-11-25, backwards compatibility). */
const NOT_STREAMABLE = new Set([400, 404, 405, 406, 415, 501]);

/** How a connection may be opened: with the question for the newer revision, or without. */
type Way = "auto" | "legacy" | "sse";

/** What a contract that was not agreed on says about the server's revision: nothing where the server answered. */
function bare(error: unknown): unknown {
  return error instanceof ContractError ? error.cause : error;
}

/** Whether another revision is worth a try; never when the server is down or refused the credential or the contract. */
function mayBeOtherEra(thrown: unknown, way: Way): boolean {
  const error = bare(thrown);
  if (thrown instanceof ContractError && error === undefined) return false;
  if (refusalCode(error)) return false;
  if (SdkHttpError.isInstance(error)) return error.status !== 401 && error.status !== 403;
  if (way !== "auto") return true;
  if (!SdkError.isInstance(error)) return false;
  return error.code === SdkErrorCode.EraNegotiationFailed || error.code === SdkErrorCode.RequestTimeout;
}

/** Whether the question for the newer revision found nobody to answer it: that says nothing about who will be there next time. */
function nobodyAnswered(thrown: unknown): boolean {
  const error = bare(thrown);
  if (SdkHttpError.isInstance(error)) return error.status >= 500;
  return SdkError.isInstance(error) && error.code === SdkErrorCode.EraNegotiationFailed;
}

function nextWay(error: unknown, config: EndpointConfig, tried: readonly Way[]): Way | undefined {
  const last = tried.at(-1) ?? "auto";
  if (!mayBeOtherEra(error, last)) return undefined;
  const refused = SdkHttpError.isInstance(error) && NOT_STREAMABLE.has(error.status);
  const order: Way[] = "url" in config && refused ? ["sse", "legacy", "auto"] : ["legacy", "auto"];
  return order.find((way) => !tried.includes(way));
}

/** The authorisation of a server's requests, and who they are made for at the moment. */
interface Identified {
  readonly session: AuthSession;
  identify(): Promise<string>;
}

/** How a connection is opened. */
export interface OpenOptions {
  readonly identified?: Identified | undefined;
  /** What is known about the server. */
  readonly known: Verdict | undefined;
  /** Gives up when aborted. */
  readonly signal: AbortSignal;
  /** Told about every failed attempt that is still being cleaned up. */
  readonly onClosing: (closing: Promise<void>) => void;
}

/** A connection, and the way it was opened. */
export interface Opened {
  readonly connection: Connection;
  readonly sse: boolean;
}

/**
 * Opens a connection within the server's connect budget: the newer revision first, then, unless the server is down or
 * refuses the credential, the older one on a fresh transport (some old servers exit or stay silent when asked), then, for
 * a server that refuses Streamable HTTP, the transport before it.
 * Where a contract is wanted, it is agreed on with the first request.
 * @throws ConnectionError `unreachable`, AuthError, ContractError
 */
export async function openConnection(
  server: string,
  config: EndpointConfig,
  hooks: ConnectionHooks,
  { known, signal, onClosing, identified }: OpenOptions,
): Promise<Opened> {
  const budget = config.connectTimeoutMs ?? 5_000;
  const place = placeOf(config);
  let until = Date.now() + budget;
  // starting a process blocks for a moment: the time of all that are opened together begins before the first one is started
  await Promise.resolve();
  let words = "";
  let ending: string | undefined;
  const openOne = async (way: Way, known: Verdict | undefined, asked: Asked | undefined): Promise<Opened> => {
    const identity = identified && { session: identified.session, principal: await identified.identify() };
    const left = Math.max(1, until - Date.now());
    let timer: NodeJS.Timeout | undefined;
    const sse = way === "sse";
    const connection = new Connection(server, config, hooks, { sse, identity, asked });
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(unreachable({ server, place }, `it did not answer within ${budget} ms`)), left);
    });
    const verdict = way !== "auto" ? ({ kind: "legacy" } as const) : known?.kind === "modern" ? known : undefined;
    try {
      const opened = Promise.race([connection.open(verdict, left), late]);
      await withSignal(opened, signal, () => unreachable({ server, place }, "the client was closed"));
      return { connection, sse };
    } catch (error) {
      words = connection.lastWords;
      ending = connection.ending;
      onClosing(connection.close());
      throw error;
    } finally {
      clearTimeout(timer);
    }
  };
  const attempt = async (way: Way): Promise<Opened> => {
    const remembered = way === "auto" && known?.kind === "modern" && (await isBelieved(server, config, known.discover));
    if (way === "auto" && !remembered && climbsAnew(config)) {
      const close = (connection: Connection) => onClosing(connection.close());
      return openStepwise(
        { server, config, hooks, until: () => until },
        (asked) => openOne(way, undefined, asked),
        close,
      );
    }
    const opened = await (remembered
      ? openOne(way, known, undefined)
      : openAsking(config, (asked) => openOne(way, undefined, asked)));
    try {
      const settled = settleContract(server, opened.connection, hooks, remembered);
      await withSignal(settled, signal, () => unreachable({ server, place }, "the client was closed"));
      return opened;
    } catch (error) {
      onClosing(opened.connection.close());
      throw error;
    }
  };
  const tried: Way[] = [];
  let refusals = 0;
  let way: Way | undefined = known === undefined || known.kind === "modern" ? "auto" : known.kind;
  let last: unknown;
  while (way !== undefined && Date.now() < until && !signal.aborted) {
    tried.push(way);
    try {
      const opened = await attempt(way);
      if (way !== "legacy" || !("url" in config) || !nobodyAnswered(last)) return opened;
      // it has just come up, or a connection broke: taken for an old one, it would be treated as such for as long as it lives
      const better = await attempt("auto").catch(() => undefined);
      if (!better) return opened;
      onClosing(opened.connection.close());
      return better;
    } catch (error) {
      if (identified && error instanceof Refusal) {
        // a person may be asked now: that time is not the server's
        const better = identified.session.refused(error.refused, ++refusals);
        await withSignal(better, signal, () => unreachable({ server, place }, "the client was closed"));
        tried.pop();
        until = Date.now() + budget;
        continue;
      }
      // that the oldest transport is refused as well says less than why the newer one was
      const kept =
        way === "sse" ? last !== undefined : last instanceof ContractError && !(error instanceof ContractError);
      if (!kept) last = error;
      way = nextWay(error, config, tried);
    }
  }
  const { error } = classify(last, { server, place, what: HANDSHAKE, session: false });
  if ("command" in config && config.cwd !== undefined && refusalCode(last) === "ENOENT" && !existsSync(config.cwd))
    throw unreachable({ server, place }, `its cwd ${JSON.stringify(config.cwd)} does not exist`, last);
  if (
    !(error instanceof ConnectionError) ||
    ["unreachable", "http_error", "redirected", "session_lost"].includes(error.code)
  )
    throw error;
  const reason =
    error.code !== "lost"
      ? error.message
      : (ending ?? (error.cause instanceof Error ? error.cause.message : "it was closed"));
  throw unreachable({ server, place }, words ? `${reason}; its last words: ${words}` : reason, last);
}
