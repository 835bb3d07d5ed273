import { createRequire } from "node:module";
import type * as OpenTelemetry from "@opentelemetry/api";

/** Where OpenTelemetry keeps what a program registered: one object for all copies of its API, by its major version. */
const REGISTERED = Symbol.for("opentelemetry.js.api.1");
const require = createRequire(import.meta.url);
let api: typeof OpenTelemetry | undefined;

/**
 * OpenTelemetry's API, once the program has registered a provider (with `openTelemetry` of `@tenon/telemetry`, or by itself);
 * undefined before. It is loaded with the first use after that, so that whoever wants no telemetry pays nothing for it: neither
 * the 13 ms of its start nor a span a call.
 */
export function openTelemetryApi(): typeof OpenTelemetry | undefined {
  if (api) return api;
  if (!(REGISTERED in globalThis)) return undefined;
  api = require("@opentelemetry/api") as typeof OpenTelemetry; // its own types
  return api;
}

/** The same where the program has registered a provider of traces: without one, what a span is made of would be made for nothing. */
export function tracingApi(): typeof OpenTelemetry | undefined {
  const registered: unknown = Reflect.get(globalThis, REGISTERED);
  return typeof registered === "object" && registered !== null && "trace" in registered
    ? openTelemetryApi()
    : undefined;
}
