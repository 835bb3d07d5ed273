import type { Telemetry } from "@tenon/telemetry";
import type { ServeFlags } from "./flags.ts";

export type { Telemetry } from "@tenon/telemetry";

/** Milliseconds that the end of a program waits for a collector. */
const CLOSE_MS = 800;

/**
 * Traces and numbers, where somebody wants either; else none of it is loaded. The servers that this program starts send theirs to
 * the same collector.
 */
export async function openTelemetry(
  serviceName: string,
  { adminPort, otlp }: Pick<ServeFlags, "adminPort" | "otlp">,
): Promise<Telemetry | undefined> {
  if (otlp) process.env.OTEL_EXPORTER_OTLP_ENDPOINT = otlp; // where the servers inherit it, and the SDK reads it
  const { OTEL_EXPORTER_OTLP_ENDPOINT: all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: traces } = process.env;
  if (adminPort === undefined && !all && !traces) return undefined;
  const telemetry = await import("@tenon/telemetry");
  return telemetry.openTelemetry({ serviceName, closeMs: CLOSE_MS });
}
