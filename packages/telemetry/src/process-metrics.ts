import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import type { Meter } from "@opentelemetry/api";

/** Milliseconds between two looks at how late the event loop is. */
const RESOLUTION_MS = 20;

/**
 * Has a meter tell about this process: the names that dashboards for Node and Prometheus know.
 * @returns ends the looking
 */
export function watchProcess(meter: Meter): () => void {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const startedAt = performance.timeOrigin / 1_000;
  const cpu = meter.createObservableCounter("process_cpu_seconds_total", {
    description: "Time of a processor that was used.",
  });
  const gauges = {
    resident: meter.createObservableGauge("process_resident_memory_bytes", { description: "Memory that is resident." }),
    started: meter.createObservableGauge("process_start_time_seconds", {
      description: "When it was started, since 1970.",
    }),
    lag: meter.createObservableGauge("nodejs_eventloop_lag_seconds", {
      description: "How late the event loop was on average, since the last reading.",
    }),
    lagP99: meter.createObservableGauge("nodejs_eventloop_lag_p99_seconds", {
      description: "How late it was in the worst of a hundred cases, since the last reading.",
    }),
    used: meter.createObservableGauge("nodejs_heap_size_used_bytes", { description: "Heap in use." }),
    total: meter.createObservableGauge("nodejs_heap_size_total_bytes", { description: "Heap that was reserved." }),
    external: meter.createObservableGauge("nodejs_external_memory_bytes", {
      description: "Memory outside the heap that it holds.",
    }),
  };
  /** The timer itself takes so long; what is beyond is lag. Without a reading yet it is not a number. */
  const seconds = (nanoseconds: number): number => Math.max(0, (nanoseconds || 0) / 1e9 - RESOLUTION_MS / 1_000);
  const all = [cpu, ...Object.values(gauges)];
  meter.addBatchObservableCallback((result) => {
    const { rss, heapUsed, heapTotal, external } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    result.observe(cpu, (user + system) / 1e6);
    result.observe(gauges.resident, rss);
    result.observe(gauges.started, startedAt);
    result.observe(gauges.lag, seconds(delay.mean));
    result.observe(gauges.lagP99, seconds(delay.percentile(99)));
    result.observe(gauges.used, heapUsed);
    result.observe(gauges.total, heapTotal);
    result.observe(gauges.external, external);
    delay.reset();
  }, all);
  return () => void delay.disable();
}
