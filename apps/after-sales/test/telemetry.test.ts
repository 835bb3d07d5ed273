import { describe, expect, it, onTestFinished } from "vitest";
import { startCollector } from "../../../packages/telemetry/test/collector.ts";
import { dataDirectory, talk } from "./desk.ts";

describe("the desk, where a collector is named", () => {
  it("tells it of one trace through the agent and the server that it asked, and of nobody's order", async () => {
    const collector = await startCollector();
    onTestFinished(() => collector.close());
    const text = await talk(dataDirectory(), ["查询订单ORD-001"], { args: ["--otlp", collector.url] });
    expect(text).toContain("299.00 元");

    const served = await collector.span(({ kind, name }) => kind === 2 && name === "tools/call query_order");
    const run = await collector.span(({ name }) => name.startsWith("invoke_agent"));
    expect(served).toMatchObject({ service: "after-sales-order", traceId: run.traceId });
    expect(run.service).toBe("after-sales-agent");
    expect(JSON.stringify(collector.spans)).not.toContain("ORD-001");
  });
});
