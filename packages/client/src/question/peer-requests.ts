import {
  type ClientCapabilities,
  ProtocolErrorCode,
  type Client as SdkClient,
  ProtocolError as SdkProtocolError,
} from "@modelcontextprotocol/client";
import { ConfigError, ConnectionError, isRecord, messageOf, TenonError } from "@tenon/core";
import { noteAsked } from "../call/marks.ts";
import { cancelled, withSignal } from "../connection/deadline.ts";
import type { ActiveCall } from "../connection/exchange.ts";
import type { ClientOptions } from "../types/client.ts";
import type { EventSource } from "../types/events.ts";
import { checkRoots, listRoots } from "./roots.ts";
import { answerSampling, parseSampling } from "./sampling.ts";

/** A model and the person who approves may take this long, in milliseconds. */
const LIMIT_MS = 600_000;

type Requests = Readonly<Record<string, unknown>>;
type Answer = (params: unknown, source: EventSource & { readonly signal: AbortSignal }) => Promise<object>;

/** Answers the requests of servers that are no questions to a person: sampling and roots, as far as configured. */
export interface PeerAnswers {
  /** Declared when a connection opens. */
  readonly capabilities: ClientCapabilities;
  /** Answers legacy servers, which ask inside a running call; the clocks of the calls stand still meanwhile. */
  register(server: string, sdk: SdkClient, calls: () => readonly ActiveCall[]): void;
  /** Takes the requests of a round that are answered here; the rest is for others. */
  split(requests: Requests): { readonly own: Requests; readonly rest: Requests };
  /** Answers them, by key. @throws TenonError */
  answer(own: Requests, source: EventSource, signal: AbortSignal): Promise<Record<string, object>>;
}

async function bounded(
  method: string,
  answer: Answer,
  params: unknown,
  source: EventSource,
  signal: AbortSignal,
): Promise<object> {
  const { server } = source;
  const late = AbortSignal.timeout(LIMIT_MS);
  const until = AbortSignal.any([signal, late]);
  const onAbort = (): TenonError =>
    late.aborted
      ? new ConnectionError(`the answer to ${method} of server "${server}" took longer than ${LIMIT_MS} ms`, {
          code: "timeout",
          server,
          maybeExecuted: true,
        })
      : cancelled(server, method, signal.reason, true);
  try {
    return await withSignal(answer(params, { ...source, signal: until }), until, onAbort);
  } catch (cause) {
    if (cause instanceof TenonError) throw cause;
    const reason = messageOf(cause);
    const message = `the handler of ${method} threw on a request of server "${server}": ${reason}`;
    throw new ConfigError(message, { code: "handler_failed", server, maybeExecuted: true, cause });
  }
}

/**
 * Reads `sampling` and `roots` of a client's options.
 * @throws ConfigError `invalid_option`, `unknown_option`
 */
export function createPeerAnswers(options: Pick<ClientOptions, "sampling" | "roots">): PeerAnswers {
  const answers = new Map<"sampling/createMessage" | "roots/list", Answer>();
  const { sampling, roots } = options;
  if (sampling !== undefined) {
    const parsed = parseSampling(sampling, "createClient(options).sampling");
    answers.set("sampling/createMessage", (params, source) => answerSampling(parsed, params, source));
  }
  if (roots !== undefined) {
    if (typeof roots !== "function") checkRoots(roots, "createClient(options).roots");
    answers.set("roots/list", (_, { server, tool, callId }) =>
      listRoots(roots, { server, ...(tool !== undefined && { tool }), ...(callId !== undefined && { callId }) }),
    );
  }
  const find = (request: unknown): [method: string, answer: Answer] | undefined => {
    if (!isRecord(request)) return undefined;
    for (const [method, answer] of answers) if (method === request.method) return [method, answer];
    return undefined;
  };
  return {
    capabilities: { ...(sampling !== undefined && { sampling: {} }), ...(roots !== undefined && { roots: {} }) },
    register(server, sdk, calls) {
      for (const [method, answer] of answers) {
        sdk.setRequestHandler(method, async (request, ctx) => {
          const active = calls();
          const [call] = active.length === 1 ? active : [];
          for (const { source } of active) noteAsked(source);
          const resume = active.map(({ deadline }) => deadline.pause());
          const until = call ? AbortSignal.any([ctx.mcpReq.signal, call.deadline.signal]) : ctx.mcpReq.signal;
          try {
            // answerSampling and listRoots give what the method's result needs
            return (await bounded(method, answer, request.params, call?.source ?? { server }, until)) as never;
          } catch (error) {
            // the revisions before 2026-07-28 answer -1 where the person refused
            if (error instanceof TenonError && error.code === "sampling_declined") {
              throw new SdkProtocolError(-1, "the person declined");
            }
            // the reason is for the caller, not for the server
            if (error instanceof TenonError) call?.deadline.fail(error);
            throw new SdkProtocolError(ProtocolErrorCode.InternalError, `the client could not answer ${method}`);
          } finally {
            for (const go of resume) go();
          }
        });
      }
    },
    split(requests) {
      const entries = Object.entries(requests);
      return {
        own: Object.fromEntries(entries.filter(([, request]) => find(request))),
        rest: Object.fromEntries(entries.filter(([, request]) => !find(request))),
      };
    },
    async answer(own, source, signal) {
      const given: Record<string, object> = {};
      // one after the other: a person approves one at a time
      for (const [key, request] of Object.entries(own)) {
        const found = find(request);
        const params = isRecord(request) ? request.params : undefined;
        if (found) given[key] = await bounded(found[0], found[1], params, source, signal);
      }
      return given;
    },
  };
}
