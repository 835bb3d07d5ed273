import { codeOf } from "@tenon/core";
import type { Numbers } from "./serve/metrics.ts";

/**
 * The numbers for an admin port, and traces where the environment names a collector (`OTEL_EXPORTER_OTLP_ENDPOINT`). Undefined
 * where neither is asked for, or where a module of the user's has set OpenTelemetry up by itself.
 */
export async function openNumbers(
  { name, version }: { readonly name: string; readonly version?: string },
  adminPort: number | undefined,
): Promise<Numbers | undefined> {
  const traced = Object.keys(process.env).some((key) => key.startsWith("OTEL_EXPORTER_OTLP_"));
  if (adminPort === undefined && !traced) return undefined;
  const { openTelemetry } = await import("@tenon/telemetry");
  try {
    return await openTelemetry({
      serviceName: process.env.OTEL_SERVICE_NAME ?? name,
      ...(version !== undefined && { serviceVersion: version }),
    });
  } catch (error) {
    if (codeOf(error) === "telemetry_open") return undefined;
    throw error;
  }
}
