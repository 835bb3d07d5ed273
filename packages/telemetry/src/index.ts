export { openTelemetry, type Telemetry } from "./open-telemetry.ts";
export type { OpenTelemetryOptions, OtlpOptions } from "./options.ts";
