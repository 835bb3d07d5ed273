import { describe, expect, it } from "vitest";
import { clientOf, shop } from "../../test/shop.ts";
import type { Interceptor } from "../index.ts";
import { timeout } from "./timeout.ts";

const slow = () => new Promise<string>((resolve) => setTimeout(resolve, 5_000, "late"));

describe("timeout", () => {
  it("ends a call of a tool with a limit, cancels it, and says that it may have run", async () => {
    const server = await shop({ slow: { work: slow }, quick: {} });
    let inner: AbortSignal | undefined;
    const look: Interceptor = (request, next) => {
      inner = request.signal;
      return next(request);
    };
    const client = clientOf(server.url, { interceptors: [timeout({ tools: { "s/slow": 300 } }), look] });
    await client.callTool("s", "quick");
    await expect(client.callTool("s", "slow")).rejects.toMatchObject({
      name: "ConnectionError",
      code: "timeout",
      maybeExecuted: true,
      server: "s",
      data: { ms: 300 },
    });
    expect(inner?.aborted).toBe(true);
  });

  it("takes the limit of the server's tool before the tool's before the default", async () => {
    const server = await shop({ slow: { work: slow } });
    const options = { timeoutMs: 30_000, tools: { slow: 20_000, "s/slow": 100 } };
    const client = clientOf(server.url, { interceptors: [timeout(options)] });
    await expect(client.callTool("s", "slow")).rejects.toMatchObject({ data: { ms: 100 } });
    const other = clientOf(server.url, { interceptors: [timeout({ timeoutMs: 100 })] });
    await expect(other.callTool("s", "slow")).rejects.toMatchObject({ data: { ms: 100 } });
  });

  it("leaves the caller's own signal in force", async () => {
    const server = await shop({ slow: { work: slow } });
    const client = clientOf(server.url, { interceptors: [timeout({ timeoutMs: 60_000 })] });
    const call = client.callTool("s", "slow", {}, { signal: AbortSignal.timeout(200) });
    await expect(call).rejects.toMatchObject({ code: "cancelled" });
  });

  it("ends an interceptor that hangs inside", async () => {
    const hang: Interceptor = () => new Promise(() => {});
    const client = clientOf("http://127.0.0.1:9", { interceptors: [timeout({ timeoutMs: 50 }), hang] });
    await expect(client.callTool("s", "t")).rejects.toMatchObject({ code: "timeout" });
  });

  it("refuses limits that make no sense", () => {
    expect(() => timeout({ timeoutMs: 0 })).toThrow("limit of timeoutMs must be a positive number");
    expect(() => timeout({ tools: { t: Number.NaN } })).toThrow("limit of t must be");
  });
});
