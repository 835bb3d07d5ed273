// The SDK is loaded when it is used. Its modules are CommonJS: in a bundle what they export is under `default` alone.
function named<Module extends object>(module: Module, name: keyof Module & string): Module {
  return !(name in module) && "default" in module ? (module.default as Module) : module; // the same names
}

/** A module of the SDK, with the names that it exports. */
type Loading<Module> = () => Promise<Module>;

export const loadApi: Loading<typeof import("@opentelemetry/api")> = async () =>
  named(await import("@opentelemetry/api"), "DiagLogLevel");
export const loadResources: Loading<typeof import("@opentelemetry/resources")> = async () =>
  named(await import("@opentelemetry/resources"), "defaultResource");
export const loadTraces: Loading<typeof import("@opentelemetry/sdk-trace-node")> = async () =>
  named(await import("@opentelemetry/sdk-trace-node"), "NodeTracerProvider");
export const loadTraceExporter: Loading<typeof import("@opentelemetry/exporter-trace-otlp-http")> = async () =>
  named(await import("@opentelemetry/exporter-trace-otlp-http"), "OTLPTraceExporter");
export const loadMetrics: Loading<typeof import("@opentelemetry/sdk-metrics")> = async () =>
  named(await import("@opentelemetry/sdk-metrics"), "MeterProvider");
export const loadMetricExporter: Loading<typeof import("@opentelemetry/exporter-metrics-otlp-http")> = async () =>
  named(await import("@opentelemetry/exporter-metrics-otlp-http"), "OTLPMetricExporter");
export const loadPrometheus: Loading<typeof import("@opentelemetry/exporter-prometheus")> = async () =>
  named(await import("@opentelemetry/exporter-prometheus"), "PrometheusSerializer");
