import type { MetricData, ResourceMetrics } from "@opentelemetry/sdk-metrics";

/** Further names of a metric, for dashboards that exist, and of its labels. */
const ALIASES: Readonly<Record<string, { readonly name: string; readonly labels: Readonly<Record<string, string>> }>> =
  {
    tenon_contract_negotiations_total: { name: "mcp_handshake_total", labels: { result: "status" } },
    tenon_tool_call_duration_seconds: { name: "mcp_execution_duration_seconds", labels: {} },
  };

/** The unit is in the name, where Prometheus wants it. */
const unitless = (metric: MetricData): MetricData => ({ ...metric, descriptor: { ...metric.descriptor, unit: "" } });

function aliasOf(metric: MetricData): MetricData[] {
  const alias = ALIASES[metric.descriptor.name];
  if (!alias) return [];
  const dataPoints = metric.dataPoints.map((point) => ({
    ...point,
    attributes: Object.fromEntries(
      Object.entries(point.attributes).map(([label, value]) => [alias.labels[label] ?? label, value]),
    ),
  }));
  const description = `The same as ${metric.descriptor.name}.`;
  // the points are those of the same kind of metric
  return [{ ...metric, descriptor: { ...metric.descriptor, name: alias.name, description }, dataPoints } as MetricData];
}

/** What was collected, with the names that Prometheus gets. */
export function forPrometheus(collected: ResourceMetrics): ResourceMetrics {
  return {
    resource: collected.resource,
    scopeMetrics: collected.scopeMetrics.map(({ scope, metrics }) => ({
      scope,
      metrics: metrics.map(unitless).flatMap((metric) => [metric, ...aliasOf(metric)]),
    })),
  };
}
