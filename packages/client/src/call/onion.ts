import { setMaxListeners } from "node:events";
import { ConfigError, ConnectionError, TenonError } from "@tenon/core";
import { runLayers } from "@tenon/core/internal";
import { cancelled } from "../connection/deadline.ts";
import type { ToolCallOutcome, ToolCallRequest, ToolRuntime } from "../types/calls.ts";
import type { CatalogTool } from "../types/catalog.ts";
import type { Interceptor, Next } from "../types/interceptors.ts";
import { ofSameCall } from "./request.ts";

/** How long interceptors may tidy up after the call was cancelled, in milliseconds. */
const GRACE_MS = 100;
/** A timer cannot take longer. */
const LONGEST_MS = 2 ** 31 - 1;

/** One call and the layers around it. */
export interface Onion<Runtime extends ToolRuntime, Extra> {
  /** The first one is outermost. */
  readonly interceptors: ReadonlyArray<Interceptor<Runtime, Extra>>;
  readonly core: Next<Runtime, Extra>;
  /** Makes the request around the signal of the call. */
  readonly request: (signal: AbortSignal) => ToolCallRequest<Runtime>;
  /** Each of them ends the call. */
  readonly signals: readonly AbortSignal[];
  /** Milliseconds interceptors may take in one go while nothing is on the wire. */
  readonly limitMs: number;
}

/** Has one abort follow the others; call the result to let go of them. */
function follow(signals: readonly AbortSignal[], abort: (reason: unknown) => void): () => void {
  const listeners = signals.map((signal) => {
    const listen = () => abort(signal.reason);
    if (signal.aborted) listen();
    else signal.addEventListener("abort", listen, { once: true });
    return () => signal.removeEventListener("abort", listen);
  });
  return () => {
    for (const stop of listeners) stop();
  };
}

/** A clock that runs while nothing is on the wire. */
function startClock(limitMs: number, onLate: () => void) {
  let timer: NodeJS.Timeout | undefined = setTimeout(onLate, limitMs);
  let onWire = 0;
  let ended = false;
  const stop = () => clearTimeout(timer);
  return {
    enter() {
      onWire++;
      stop();
    },
    leave() {
      if (--onWire === 0 && !ended) timer = setTimeout(onLate, limitMs);
    },
    end() {
      ended = true;
      stop();
    },
  };
}

function calledLate({ server, name }: ToolCallRequest): ConfigError {
  return new ConfigError(
    `an interceptor called next() after tools/call ${name} on server "${server}" had ended; nothing was sent. ` +
      "Await what next() returns before you answer",
    { code: "call_settled", server, maybeExecuted: false },
  );
}

/** @throws ConfigError `invalid_outcome` for what no caller could use: most likely a factory that was not called, or a `return` that is missing. */
function checkOutcome<T>(
  outcome: T,
  interceptor: { readonly name: string },
  { index, server, maybeExecuted }: { index: number; server: string; maybeExecuted: boolean },
): T {
  if (outcome !== undefined && typeof outcome !== "function") return outcome;
  const who = `interceptor ${interceptor.name || index + 1}`;
  throw new ConfigError(
    typeof outcome === "function"
      ? `${who} answered with a function; it makes an interceptor and is none: write ${interceptor.name || "it"}(…) in the list`
      : `${who} answered with nothing; return what next(request) gives, or an outcome of its own`,
    { code: "invalid_outcome", server, maybeExecuted },
  );
}

function stuck({ server, name }: ToolCallRequest, ms: number, maybeExecuted: boolean): ConnectionError {
  return new ConnectionError(
    `the interceptors around tools/call ${name} on server "${server}" did nothing for ${ms} ms: one of them neither ` +
      "answers nor calls next(). Raise timeoutMs of the call if they need longer",
    { code: "timeout", server, maybeExecuted, data: { ms } },
  );
}

/**
 * Runs one call through its interceptors. Each `next` may be called any number of times while the call lives. The call
 * ends when the outermost interceptor answers, when a signal aborts, or when the interceptors are stuck; whatever still
 * runs for it then is cancelled, and a later `next` is refused.
 * @throws ConnectionError `cancelled`, `closed` or `timeout` although an interceptor hangs
 */
export async function runOnion<Runtime extends ToolRuntime, Extra>(
  onion: Onion<Runtime, Extra>,
): Promise<ToolCallOutcome<Extra>> {
  const { interceptors, core, signals, limitMs } = onion;
  const ending = new AbortController();
  setMaxListeners(0, ending.signal); // one listener a leg
  const request = onion.request(ending.signal);
  if (interceptors.length === 0) {
    const letGo = follow(signals, (reason) => ending.abort(reason));
    return core(request).finally(letGo);
  }
  let settled = false;
  let waiting = 0; // for what `next` returned
  let sent = 0; // legs that may have taken effect
  let grace: NodeJS.Timeout | undefined;
  let give: (error: TenonError) => void = () => {};
  const givenUp = new Promise<never>((_, reject) => {
    give = reject;
  });
  givenUp.catch(() => {}); // it loses the race most of the time
  const clock = startClock(Math.min(limitMs, LONGEST_MS), () => {
    const error = stuck(request, limitMs, sent > 0);
    give(error);
    ending.abort(error);
  });
  const end = (reason: unknown) => {
    ending.abort(reason);
    // whoever heeds the signal knows better what happened
    grace ??= setTimeout(
      () => give(cancelled(request.server, `tools/call ${request.name}`, reason, sent > 0)),
      GRACE_MS,
    );
  };
  const letGo = follow(signals, end);

  const onTheWire: Next<Runtime, Extra> = async (inner) => {
    clock.enter();
    sent++;
    try {
      return await core(inner);
    } catch (error) {
      if (error instanceof TenonError && error.maybeExecuted === false) sent--;
      throw error;
    } finally {
      clock.leave();
    }
  };
  try {
    return await runLayers<
      ToolCallRequest<Runtime>,
      ToolCallOutcome<Extra>,
      ToolCallRequest<Runtime>,
      Interceptor<Runtime, Extra>
    >(
      {
        layers: interceptors,
        core: onTheWire,
        enter(given) {
          if (settled) throw calledLate(request);
          return ofSameCall(request, given);
        },
        check: (outcome, interceptor, index) =>
          checkOutcome(outcome, interceptor, { index, server: request.server, maybeExecuted: sent > 0 }),
        wait(outcome) {
          waiting++;
          // a layer that waits for one that hangs is told as well when the call ends, so that it can write that down
          return Promise.race([outcome, givenUp]).finally(() => waiting--);
        },
      },
      request,
    );
  } finally {
    settled = true;
    clock.end();
    letGo();
    if (waiting > 0) end("the call has ended");
    else {
      clearTimeout(grace);
      ending.abort("the call has ended");
    }
  }
}

/** The catalog as a model sees it: the innermost interceptor changes it first. Names are not theirs to change. */
export function showTools(
  tools: readonly CatalogTool[],
  interceptors: ReadonlyArray<{ readonly catalog?: (tool: CatalogTool) => CatalogTool }>,
): readonly CatalogTool[] {
  const changes = interceptors.flatMap(({ catalog }) => (catalog ? [catalog] : []));
  if (changes.length === 0) return tools;
  return tools.map((tool) => {
    const { name, server, wireName } = tool;
    return Object.freeze({ ...changes.reduceRight((shown, change) => change(shown), tool), name, server, wireName });
  });
}
