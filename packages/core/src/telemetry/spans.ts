import type * as OpenTelemetry from "@opentelemetry/api";
import type { Attributes, Context, Link, Span } from "@opentelemetry/api";
import { isRecord } from "../json.ts";
import { tracingApi } from "./api.ts";
import type { ContentOf } from "./content.ts";

type Api = typeof OpenTelemetry;

/** W3C Trace Context. A version of the future may have more behind it. */
const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The part of a request's `_meta` that carries its trace (2026-07-28, trace context). */
export interface TraceCarrier {
  readonly traceparent: string;
  readonly tracestate?: string;
}

/** `_meta`, or whatever else may carry a trace. */
type Meta = Readonly<Record<string, unknown>> | undefined;

/** Whether a value is a `traceparent` as W3C has it. */
export function isTraceparent(value: unknown): value is string {
  return typeof value === "string" && TRACEPARENT.test(value);
}

/** Whether a value may be a `tracestate`. */
export function isTracestate(value: unknown): value is string {
  return typeof value === "string" && TRACESTATE.test(value);
}

/** The trace of a request by its `_meta`; undefined where that carries none. */
export function carriedTrace(meta: Meta): TraceCarrier | undefined {
  if (!meta || !isTraceparent(meta.traceparent)) return undefined;
  const { traceparent, tracestate } = meta;
  return isTracestate(tracestate) ? { traceparent, tracestate } : { traceparent };
}

/** A span that is under way. */
export interface OpenSpan {
  /** What the other side gets, so that its spans become children of this one. */
  readonly carrier: TraceCarrier | undefined;
  /** Gives it another name, where only its end tells what it was. */
  rename(name: string): void;
  /** Adds attributes, where they are known by now. */
  set(attributes: Attributes): void;
  /**
   * The work failed without throwing.
   * @param type a word of few, for `error.type`
   * @param message only where contents may be told
   */
  fail(type: string, message?: string): void;
}

/** What a span is. */
export interface SpanAbout {
  /** With few different values, such as `tools/call refund`. */
  readonly name: string;
  readonly kind: "client" | "server" | "consumer" | "internal";
  readonly attributes?: Attributes | undefined;
  /**
   * `_meta` with the trace it belongs to. A client's own active span counts more; for a server what the request says counts more,
   * and a span that was active is linked.
   */
  readonly meta?: Meta;
  /** Whether the trace of `meta` counts more than a span that is active, as it does for servers. Default false. */
  readonly continues?: boolean;
  /** How errors may be told in their own words, which may repeat what was sent. Default: not at all. */
  readonly words?: ContentOf | undefined;
  /** Whether what was thrown is no failure, such as a call that is suspended until somebody answers. Default: all are. */
  readonly expected?: (error: unknown) => boolean;
}

function remoteContext(api: Api, meta: Meta): Context | undefined {
  const carried = carriedTrace(meta);
  const [, traceId, spanId, flags] = (carried && TRACEPARENT.exec(carried.traceparent)) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  return api.trace.setSpanContext(api.ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: Number.parseInt(flags, 16) & api.TraceFlags.SAMPLED,
    isRemote: true,
    ...(carried?.tracestate !== undefined && { traceState: api.createTraceState(carried.tracestate) }),
  });
}

function carrierOf(api: Api, span: Span): TraceCarrier | undefined {
  const { traceId, spanId, traceFlags, traceState } = span.spanContext();
  if (!api.isSpanContextValid({ traceId, spanId, traceFlags })) return undefined;
  const state = traceState?.serialize();
  const traceparent = `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, "0")}`;
  return isTracestate(state) ? { traceparent, tracestate: state } : { traceparent };
}

/** The trace of what runs now, for whoever carries it on. Undefined where there is none. */
export function currentTrace(): TraceCarrier | undefined {
  const api = tracingApi();
  const span = api?.trace.getActiveSpan();
  return api && span && carrierOf(api, span);
}

/** As much of a session's id as tells sessions apart: whoever has all of it may be taken for its owner. */
export function sessionAttribute(id: string): string {
  return `${id.slice(0, 8)}…`;
}

/** Adds to the span of what runs now, where there is one: what only a part further in knows. */
export function noteOnSpan(about: () => Attributes): void {
  tracingApi()?.trace.getActiveSpan()?.setAttributes(about());
}

/** The id of the trace of what runs now, else of the one that `meta` carries. For log lines and audit entries. */
export function traceIdOf(meta: Meta): string | undefined {
  const active = tracingApi()?.trace.getActiveSpan()?.spanContext().traceId;
  if (active !== undefined && !/^0+$/.test(active)) return active;
  return meta?.traceparent === undefined ? undefined : carriedTrace(meta)?.traceparent.slice(3, 35);
}

/** What kind of error it was, for `error.type`: the code of the wire where there is one, else ours, else its class. */
function errorAttributes(error: unknown): Attributes {
  const { code, data, name } = (typeof error === "object" && error !== null ? error : {}) as Record<string, unknown>; // read only
  const wire =
    typeof code === "number" ? code : isRecord(data) && typeof data.code === "number" ? data.code : undefined;
  if (wire !== undefined) return { "error.type": String(wire), "rpc.response.status_code": String(wire) };
  return { "error.type": typeof code === "string" ? code : typeof name === "string" ? name : "unknown" };
}

function parentOf(
  api: Api,
  { kind, meta, continues = kind === "server" || kind === "consumer" }: SpanAbout,
): { parent: Context; links: Link[] } {
  const active = api.context.active();
  const here = api.trace.getSpanContext(active);
  const remote = remoteContext(api, meta);
  if (!remote || (here && !continues)) return { parent: active, links: [] };
  const there = api.trace.getSpanContext(remote);
  // what is in the context besides its span stays
  const parent = there ? api.trace.setSpanContext(active, there) : active;
  return { parent, links: here && here.traceId !== there?.traceId ? [{ context: here }] : [] };
}

/**
 * Runs something inside a span, and has what it starts become children of that. Where the program has registered no telemetry
 * this is a call of `run`, and `about` is never asked.
 * @param run gets the span; undefined where there is none
 */
export function inSpan<T>(about: () => SpanAbout, run: (span: OpenSpan | undefined) => Promise<T>): Promise<T> {
  const api = tracingApi();
  return api ? spanned(api, about(), run) : run(undefined);
}

async function spanned<T>(api: Api, what: SpanAbout, run: (span: OpenSpan | undefined) => Promise<T>): Promise<T> {
  const { parent, links } = parentOf(api, what);
  const kind = {
    client: api.SpanKind.CLIENT,
    server: api.SpanKind.SERVER,
    consumer: api.SpanKind.CONSUMER,
    internal: api.SpanKind.INTERNAL,
  }[what.kind];
  const options = { kind, links, ...(what.attributes && { attributes: what.attributes }) };
  const span = api.trace.getTracer("tenon").startSpan(what.name, options, parent);
  const fail = (attributes: Attributes, message: string | undefined): void => {
    span.setAttributes(attributes);
    span.setStatus({ code: api.SpanStatusCode.ERROR, ...(message !== undefined && { message }) });
  };
  const open: OpenSpan = {
    carrier: carrierOf(api, span),
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes(attributes),
    fail: (type, message) => fail({ "error.type": type }, message),
  };
  try {
    return await api.context.with(api.trace.setSpan(parent, span), () => run(open));
  } catch (error) {
    if (!what.expected?.(error))
      fail(errorAttributes(error), error instanceof Error ? what.words?.(error.message).slice(0, 500) : undefined);
    throw error;
  } finally {
    span.end();
  }
}
