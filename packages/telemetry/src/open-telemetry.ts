import { randomUUID } from "node:crypto";
import type { DiagLogger } from "@opentelemetry/api";
import { ConfigError, cleanText } from "@tenon/core";
import { startMetrics } from "@tenon/core/internal";
import { type Connections, createConnections } from "./connections.ts";
import { checkTelemetryOptions, type OpenTelemetryOptions, type Plan, planOf } from "./options.ts";
import { watchProcess } from "./process-metrics.ts";
import { forPrometheus } from "./prometheus.ts";
import {
  loadApi,
  loadMetricExporter,
  loadMetrics,
  loadPrometheus,
  loadResources,
  loadTraceExporter,
  loadTraces,
} from "./sdk.ts";

const CLOSE_MS = 3_000;
/** Milliseconds between two lines about what cannot be sent. */
const PROBLEM_MS = 60_000;
/** Characters of such a line. */
const MAX_PROBLEM = 500;

/** A program's traces and numbers, while they are kept. */
export interface Telemetry {
  /** All numbers in the text format of Prometheus, for `server.admin({ metrics })`. Empty where `metrics` is false. */
  text(): Promise<string>;
  /** Sends what is left, for as long as `closeMs`, and ends it. Never throws; the second call is the first one. */
  close(): Promise<void>;
  /** The same as `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** A line on stderr, once a minute at most: a collector that is down must not fill a log. */
function saySometimes(): (message: string) => void {
  let last = Number.NEGATIVE_INFINITY;
  return (message) => {
    const now = performance.now();
    if (now - last < PROBLEM_MS) return;
    last = now;
    process.stderr.write(`tenon: telemetry: ${message}\n`);
  };
}

/** The SDK tells of failures in texts and errors of all kinds. */
function diagnosing(say: (message: string) => void): DiagLogger {
  const told = (...parts: unknown[]): void => {
    const text = parts
      .map((part) => (part instanceof Error ? part.message : typeof part === "string" ? part : ""))
      .join(" ");
    try {
      say(cleanText(text).slice(0, MAX_PROBLEM));
    } catch {
      // who listens is not allowed to break what is observed
    }
  };
  const silent = (): void => undefined;
  return { error: told, warn: told, info: silent, debug: silent, verbose: silent };
}

async function resourceOf({ serviceName, serviceVersion }: Plan) {
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = await loadResources();
  return defaultResource()
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(
      resourceFromAttributes({
        ...(serviceName !== undefined && { "service.name": serviceName }),
        ...(serviceVersion !== undefined && { "service.version": serviceVersion }),
        "service.instance.id": randomUUID(),
      }),
    );
}
type Resource = Awaited<ReturnType<typeof resourceOf>>;

/** A part of it: what ends it, and what it has to say to Prometheus. */
interface Part {
  shutdown(): Promise<void>;
  text?(): Promise<string>;
}

async function openTraces(plan: Plan, resource: Resource, { open }: Connections): Promise<Part | undefined> {
  if (!plan.traces) return undefined;
  const [{ trace, context, propagation }, { BatchSpanProcessor, NodeTracerProvider }, { OTLPTraceExporter }] =
    await Promise.all([loadApi(), loadTraces(), loadTraceExporter()]);
  const exporter = new OTLPTraceExporter({ ...plan.traces, httpAgentOptions: open });
  const provider = new NodeTracerProvider({ resource, spanProcessors: [new BatchSpanProcessor(exporter)] });
  provider.register();
  return {
    async shutdown() {
      // first: sending what is left may take too long
      trace.disable();
      context.disable();
      propagation.disable();
      await provider.shutdown();
    },
  };
}

async function openMetrics(plan: Plan, resource: Resource, { open }: Connections): Promise<Part | undefined> {
  if (!plan.metrics) return undefined;
  const [{ metrics }, { MeterProvider, PeriodicExportingMetricReader }, { PrometheusExporter, PrometheusSerializer }] =
    await Promise.all([loadApi(), loadMetrics(), loadPrometheus()]);
  // it only collects: what listens is the server's own admin port
  const reader = new PrometheusExporter({ preventServerStart: true });
  const pushed = plan.pushedMetrics && (await loadMetricExporter());
  const pushing = pushed
    ? [
        new PeriodicExportingMetricReader({
          exporter: new pushed.OTLPMetricExporter({ ...plan.pushedMetrics, httpAgentOptions: open }),
        }),
      ]
    : [];
  const provider = new MeterProvider({ resource, readers: [reader, ...pushing] });
  metrics.setGlobalMeterProvider(provider);
  const stop = watchProcess(provider.getMeter("tenon.process"));
  startMetrics();
  const serializer = new PrometheusSerializer(undefined, false, undefined, false, true);
  return {
    async text() {
      const { resourceMetrics } = await reader.collect();
      return serializer.serialize(forPrometheus(resourceMetrics));
    },
    async shutdown() {
      stop();
      metrics.disable();
      await provider.shutdown();
    },
  };
}

function alreadyOpen(): ConfigError {
  return new ConfigError(
    "This program has telemetry already: openTelemetry() is called once, and not beside an SDK that the program set up by itself; " +
      "Tenon uses whatever is registered",
    { code: "telemetry_open" },
  );
}

async function openParts(
  plan: Plan,
  { onProblem = saySometimes() }: OpenTelemetryOptions,
  connections: Connections,
): Promise<readonly Part[]> {
  const { diag, DiagLogLevel, metrics, ProxyTracerProvider, trace } = await loadApi();
  const tracer = trace.getTracerProvider();
  const traced =
    tracer instanceof ProxyTracerProvider && tracer.getDelegate().constructor.name !== "NoopTracerProvider";
  const measured = metrics.getMeterProvider().constructor.name !== "NoopMeterProvider";
  if ((plan.traces && traced) || (plan.metrics && measured)) throw alreadyOpen();
  diag.setLogger(diagnosing(onProblem), { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  const resource = await resourceOf(plan);
  const parts = await Promise.all([openTraces(plan, resource, connections), openMetrics(plan, resource, connections)]);
  return parts.filter((part) => part !== undefined);
}

let open = false;

/**
 * Sets this program up for OpenTelemetry: from here on Tenon's servers, clients and agents tell about what they do, and so does
 * whatever else uses OpenTelemetry's API. Traces go to a collector, where one is named; numbers are kept for `text()`. The SDK is
 * loaded with this call. Once per program; `close` makes room for another one.
 *
 * @throws ConfigError `unknown_option` with "did you mean", `invalid_option`, `otlp`, `telemetry_open` where there is one already
 * @example
 * await using telemetry = await openTelemetry({ serviceName: "orders" });
 * await server.admin({ port: 9030, metrics: telemetry });
 */
export async function openTelemetry(options: OpenTelemetryOptions = {}): Promise<Telemetry> {
  checkTelemetryOptions(options);
  const plan = planOf(options, process.env);
  if (open) throw alreadyOpen();
  open = true;
  const connections = createConnections();
  const parts = await openParts(plan, options, connections).catch((error: unknown) => {
    open = false;
    throw error;
  });
  const { diag } = await loadApi();
  const { closeMs = CLOSE_MS } = options;
  async function end(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const over = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeMs);
    });
    await Promise.race([Promise.allSettled(parts.map((part) => part.shutdown())), over]);
    clearTimeout(timer);
    connections.cut();
    diag.disable();
    open = false;
  }
  let closed: Promise<void> | undefined;
  const telemetry: Telemetry = {
    text: async () => (await Promise.all(parts.map((part) => part.text?.() ?? ""))).join(""),
    close() {
      closed ??= end();
      return closed;
    },
    [Symbol.asyncDispose]: () => telemetry.close(),
  };
  return telemetry;
}
