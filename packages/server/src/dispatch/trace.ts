import { isTraceparent, isTracestate } from "@tenon/core/internal";

const BAGGAGE = /^[\x20-\x7e]{1,8192}$/;

/**
 * The request's `_meta` with a trace context that is one, or none (2026-07-28, trace context; W3C Trace Context says to go on
 * without a malformed one). A `tracestate` without a valid `traceparent` means nothing and goes too.
 */
export function withValidTrace(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!("traceparent" in meta || "tracestate" in meta || "baggage" in meta)) return meta;
  const { traceparent, tracestate, baggage, ...rest } = meta;
  const traced = isTraceparent(traceparent);
  return {
    ...rest,
    ...(traced && { traceparent }),
    ...(traced && isTracestate(tracestate) && { tracestate }),
    ...(typeof baggage === "string" && BAGGAGE.test(baggage) && { baggage }),
  };
}
