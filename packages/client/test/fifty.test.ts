import { createServer, type Server } from "node:net";
import { expect, it } from "vitest";
import { closeAfterEach, connect, type Stub, start, stubHttp, stubStdio } from "./stub/index.ts";

closeAfterEach();

it("fifty servers, of which five are dead and five silent: the rest is listed within the connect budget", {
  timeout: 120_000,
}, async () => {
  // 25 processes on a loaded machine need their time; a silent one uses the whole budget
  const budget = 10_000;
  const silent = { on: { "server/discover": () => {}, initialize: () => {} } };
  const good: Stub[] = [];
  const configs: [string, Record<string, unknown>][] = [];
  for (let n = 0; n < 20; n++) {
    const [child, web] = [await start(stubStdio()), await start(stubHttp({ delayMs: 50 }))];
    good.push(child, web);
    configs.push([`stdio-${n}`, child.config], [`http-${n}`, web.config]);
  }
  for (let n = 0; n < 2; n++) configs.push([`silent-http-${n}`, (await start(stubHttp(silent))).config]);
  for (let n = 0; n < 3; n++) configs.push([`silent-stdio-${n}`, (await start(stubStdio(silent))).config]);
  for (let n = 0; n < 2; n++)
    configs.push([`dead-stdio-${n}`, { command: process.execPath, args: ["-e", "process.exit(1)"] }]);
  const closed = await Promise.all([1, 2, 3].map(() => closedPort()));
  for (const port of closed) configs.push([`dead-http-${port}`, { url: `http://127.0.0.1:${port}/mcp` }]);
  const servers = Object.fromEntries(configs.map(([name, config]) => [name, { ...config, connectTimeoutMs: budget }]));
  const client = connect(servers as Parameters<typeof connect>[0]); // each has a url, or a command

  expect(client.servers()).toHaveLength(50);
  globalThis.gc?.();
  const before = process.memoryUsage();
  const began = performance.now();
  const tools = await client.listTools();
  const took = performance.now() - began;
  globalThis.gc?.();
  const { heapUsed, rss } = process.memoryUsage();
  const kib = (bytes: number) => Math.round(bytes / 1024 / good.length);
  process.stdout.write(
    `fifty servers: ${tools.length} tools in ${Math.round(took)} ms; per connection ${kib(heapUsed - before.heapUsed)} KiB heap, ` +
      `${kib(rss - before.rss)} KiB resident\n`,
  );
  expect(tools).toHaveLength(40);
  expect(took).toBeLessThan(budget + 5_000);
  const health = client.servers().map(({ server, health }) => [server.split("-")[0], health]);
  expect(health.filter(([, state]) => state === "up")).toHaveLength(40);
  expect(health.filter(([, state]) => state === "down").map(([kind]) => kind)).toEqual(
    configs.slice(40).map(([name]) => name.split("-")[0]),
  );
  // and the next list costs nothing for those that are there
  const counts = good.map((stub) => stub.count("tools/list"));
  expect(await client.listTools("stdio-0", "http-19")).toHaveLength(2);
  expect(good.map((stub) => stub.count("tools/list"))).toEqual(counts);
  await client.close();
  await expect.poll(() => good.reduce((sum, stub) => sum + stub.open, 0), { timeout: 20_000 }).toBe(0);
});

/** A port that nobody listens on. */
async function closedPort(): Promise<number> {
  const server: Server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address ? address.port : 1;
}
