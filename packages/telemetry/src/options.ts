import { ConfigError } from "@tenon/core";
import {
  callable,
  checkOptions,
  flag,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  parseUrl,
  refuseOption,
  text,
} from "@tenon/core/internal";

/** Where traces are sent. */
export interface OtlpOptions {
  /**
   * Address of the collector, without `/v1/traces`: `http://127.0.0.1:4318`. Default: `OTEL_EXPORTER_OTLP_ENDPOINT`, or
   * `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` with the whole path; without any of them there are no traces.
   */
  url?: string;
  /** Sent with every export, for example a key of the collector. Default: `OTEL_EXPORTER_OTLP_HEADERS`. */
  headers?: Readonly<Record<string, string>>;
  /** Sends metrics there as well, once a minute (`OTEL_METRIC_EXPORT_INTERVAL`). Default: where `OTEL_METRICS_EXPORTER` is `otlp`. */
  metrics?: boolean;
}

/** What `openTelemetry` takes. */
export interface OpenTelemetryOptions {
  /** How this program is called in traces and metrics. Default: `OTEL_SERVICE_NAME`. */
  serviceName?: string;
  /** Its version. Default: none. */
  serviceVersion?: string;
  /** Where traces are sent. Default: what the `OTEL_EXPORTER_OTLP_…` variables say; where they say nothing, nothing is sent. */
  otlp?: OtlpOptions;
  /** Whether numbers are kept, for `text()`. Default true. */
  metrics?: boolean;
  /** Milliseconds that `close` may take to send what is left. Default 3,000. */
  closeMs?: number;
  /** Hears why something could not be sent. Default: a line on stderr, once a minute at most. */
  onProblem?: (message: string) => void;
}

const OTLP: OptionChecks<OtlpOptions> = {
  url(url, where) {
    text(url, where);
    const protocol = parseUrl(String(url))?.protocol;
    if (protocol !== "http:" && protocol !== "https:") {
      refuseOption(`${where} must be an http address such as http://127.0.0.1:4318, got ${JSON.stringify(url)}`);
    }
  },
  headers(headers, where) {
    // the values may be keys: they are not shown
    if (
      typeof headers !== "object" ||
      headers === null ||
      Object.values(headers).some((value) => typeof value !== "string")
    ) {
      refuseOption(`${where} must be an object of texts`);
    }
  },
  metrics: flag,
};
const OPTIONS: OptionChecks<OpenTelemetryOptions> = {
  serviceName: text,
  serviceVersion: text,
  otlp: (otlp, where) => checkOptions(otlp as object, OTLP as Readonly<Record<string, OptionCheck>>, where), // it refuses what is none
  metrics: flag,
  closeMs: milliseconds,
  onProblem: callable,
};

/** Refuses what `openTelemetry` would not understand. @throws ConfigError */
export function checkTelemetryOptions(options: OpenTelemetryOptions): void {
  checkOptions(options, OPTIONS, "openTelemetry(options)");
}

/** What the program's options and the standard variables come to. */
export interface Plan {
  readonly serviceName: string | undefined;
  readonly serviceVersion: string | undefined;
  /** Undefined where traces go nowhere; without an address the exporter reads its own variables. */
  readonly traces: { readonly url?: string; readonly headers?: Record<string, string> } | undefined;
  readonly pushedMetrics: { readonly url?: string; readonly headers?: Record<string, string> } | undefined;
  readonly metrics: boolean;
}

const isSet = (value: string | undefined): boolean => value !== undefined && value.trim() !== "";

/** Reads the options together with the environment. @throws ConfigError `otlp` where metrics are to be sent and nobody says where */
export function planOf(
  { serviceName, serviceVersion, otlp = {}, metrics = true }: OpenTelemetryOptions,
  env: NodeJS.ProcessEnv,
): Plan {
  const base = otlp.url?.replace(/\/+$/, "");
  const headers = otlp.headers && { headers: { ...otlp.headers } };
  const to = (path: string) => ({ ...(base !== undefined && { url: `${base}${path}` }), ...headers });
  const somewhere = (signal: "TRACES" | "METRICS"): boolean =>
    base !== undefined || isSet(env.OTEL_EXPORTER_OTLP_ENDPOINT) || isSet(env[`OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`]);
  const pushed = otlp.metrics ?? env.OTEL_METRICS_EXPORTER === "otlp";
  if (otlp.metrics && !somewhere("METRICS")) {
    throw new ConfigError(
      "openTelemetry({ otlp: { metrics } }) does not say where to: give otlp.url, or set OTEL_EXPORTER_OTLP_ENDPOINT",
      { code: "otlp" },
    );
  }
  const off = env.OTEL_SDK_DISABLED === "true";
  return {
    serviceName: serviceName ?? env.OTEL_SERVICE_NAME,
    serviceVersion,
    traces: !off && somewhere("TRACES") && env.OTEL_TRACES_EXPORTER !== "none" ? to("/v1/traces") : undefined,
    pushedMetrics: !off && metrics && pushed && somewhere("METRICS") ? to("/v1/metrics") : undefined,
    metrics: metrics && !off,
  };
}
