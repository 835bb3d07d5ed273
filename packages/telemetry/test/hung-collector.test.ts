import { type AddressInfo, createServer, type Socket } from "node:net";
import { trace } from "@opentelemetry/api";
import { openTelemetry } from "@tenon/telemetry";
import { expect, it } from "vitest";

it("a collector that takes everything and answers nothing holds no connection of a program that has closed its telemetry", async () => {
  const sockets: Socket[] = [];
  let asked: () => void = () => undefined;
  const isAsked = new Promise<void>((resolve) => {
    asked = resolve;
  });
  const collector = createServer((socket) => {
    sockets.push(socket);
    socket.on("error", () => undefined).once("data", () => asked());
  });
  await new Promise<void>((resolve) => collector.listen(0, "127.0.0.1", resolve));
  const { port } = collector.address() as AddressInfo;
  const telemetry = await openTelemetry({ otlp: { url: `http://127.0.0.1:${port}` }, metrics: false, closeMs: 300 });
  trace.getTracer("test").startSpan("work").end();
  const began = performance.now();
  const closed = telemetry.close();
  await isAsked;
  const [socket] = sockets as [Socket];
  const gone = new Promise((resolve) => socket.once("close", resolve));
  await closed;
  await gone; // the exporter alone would wait for ten seconds
  expect(performance.now() - began).toBeLessThan(3_000);
  await new Promise((resolve) => collector.close(resolve));
});
