const TRACEPARENT = /^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-.*)?$/;
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;
const BAGGAGE = /^[\x20-\x7e]{1,8192}$/;

/**
 * The request's `_meta` with a trace context that is one, or none (2026-07-28, trace context; W3C Trace Context says to go on
 * without a malformed one). A `tracestate` without a valid `traceparent` means nothing and goes too.
 */
export function withValidTrace(meta: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  if (!("traceparent" in meta || "tracestate" in meta || "baggage" in meta)) return meta;
  const fits = (value: unknown, form: RegExp): boolean => typeof value === "string" && form.test(value);
  const { traceparent, tracestate, baggage, ...rest } = meta;
  const traced = fits(traceparent, TRACEPARENT);
  return {
    ...rest,
    ...(traced && { traceparent }),
    ...(traced && fits(tracestate, TRACESTATE) && { tracestate }),
    ...(fits(baggage, BAGGAGE) && { baggage }),
  };
}
