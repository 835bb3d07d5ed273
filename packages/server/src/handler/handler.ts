import { ProtocolError, ProtocolErrorCode, type Result } from "@modelcontextprotocol/server";
import { ResultTooLargeError } from "../definition/result.ts";
import { TimeLimit } from "../definition/time-limit.ts";
import type { dispatch, Method, Service } from "../dispatch/dispatch.ts";
import { maskFailure, ToolError } from "../errors.ts";
import { requestLog } from "../log.ts";
import { createAsking, type LinearContext } from "../question/asking.ts";
import { createPages, type Pages } from "../question/pages.ts";
import { answerOnce, type Target, type Wire } from "../question/rounds.ts";
import type { Exchange, ToolContext } from "./context.ts";
import { createInnerReading } from "./inner.ts";
import type { Journal } from "./journal.ts";
import type { Linear } from "./linear.ts";
import { progressReporter, RequestContext } from "./request-context.ts";

/** What may be said to a caller about `error`; everything else goes to the log under a reference. */
export function describeFailure(
  service: Pick<Service, "log" | "exposeErrors">,
  exchange: Exchange,
  what: string,
  error: unknown,
): string {
  const log = requestLog(service.log, exchange);
  if (error instanceof ResultTooLargeError) log("error", error.message, { code: error.code });
  if (error instanceof ToolError) return error.message;
  // who stops because its client has left did right: any client could fill the log with errors otherwise
  return maskFailure(log, what, error, service.exposeErrors, exchange.signal.aborted ? "info" : "error");
}

/** What the context of a run is made of besides its request and its journal. */
export interface RunAbout {
  /** Of the tool, prompt or resource. */
  readonly name: string;
  readonly lifespan: unknown;
  readonly progress: ToolContext["progress"];
  /** The signal the handler sees. */
  signal(): AbortSignal;
  readonly task: ToolContext["task"];
  readonly startTask: ToolContext["startTask"];
}

/**
 * The context of one run of a handler. What it may ask is made when it asks: most never do.
 * @param answer the dispatcher, for what the handler asks of its own server
 */
export function contextFor(
  answer: typeof dispatch,
  service: Service,
  exchange: Exchange,
  about: RunAbout,
  linear: Linear,
  journal: () => Journal,
): ToolContext {
  const asking = (): LinearContext => {
    let made: Pages | undefined;
    const pages = (): Pages => {
      made ??= createPages({
        store: service.store,
        ids: journal().urls,
        caller: exchange.caller,
        ttlMs: service.questionTtlMs,
        waitMs: service.pageWaitMs,
        signal: about.signal(),
        onCompleted: async (elicitationId) => {
          // 2026-07-28 has no such message: there the client's own retry finds out
          if (exchange.era === "modern") return;
          await exchange.notify("notifications/elicitation/complete", { elicitationId }).catch(() => undefined);
        },
      });
      return made;
    };
    return createAsking(linear, { era: exchange.era, capabilities: exchange.client.capabilities, pages });
  };
  return new RequestContext(exchange, asking, {
    ...about,
    log: requestLog(service.log, exchange),
    notify: service.notify,
    inner: () => createInnerReading(answer, service, exchange),
    isOpen: linear.isOpen,
  });
}

/** Runs a handler as a linear function with its context, for as long as it may take, and flushes what it reported last. */
export async function runHandler<T>(
  answer: typeof dispatch,
  service: Service,
  exchange: Exchange,
  target: Omit<Target, "limit"> & { method: Method; what: string; timeoutMs: number | undefined },
  handler: (context: never) => T | Promise<T>,
  wire: Wire<T>,
): Promise<Result> {
  const limit = new TimeLimit(target.what, target.timeoutMs ?? service.timeoutMs, requestLog(service.log, exchange));
  let reporter: ReturnType<typeof progressReporter> | undefined;
  const progress: ToolContext["progress"] = (...report) => {
    reporter ??= progressReporter(exchange);
    return reporter.report(...report);
  };
  const signal = (): AbortSignal => limit.signal(exchange.signal);
  try {
    const lifespan = await service.lifespan();
    return await answerOnce(
      service,
      exchange,
      { ...target, limit },
      (linear, journal) => {
        const startTask = async (): Promise<void> => (target.startTask ? linear.leave() : undefined);
        const about = { name: target.name, lifespan, progress, signal, task: undefined, startTask };
        return handler(contextFor(answer, service, exchange, about, linear, journal) as never); // each handler declared its own lifespan type
      },
      wire,
    );
  } catch (error) {
    if (error instanceof ProtocolError || exchange.signal.aborted) throw error;
    // not the handler's failure but ours: the lifespan did not open, the store cannot be reached
    throw new ProtocolError(ProtocolErrorCode.InternalError, describeFailure(service, exchange, target.name, error));
  } finally {
    if (reporter) await reporter.flush();
  }
}
