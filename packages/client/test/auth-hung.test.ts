import { describe, expect, it, vi } from "vitest";
import { bearer, oauth, type TokenStore, workloadIdentity } from "../src/auth/index.ts";
import { OWN_WORK_MS } from "../src/auth/own-work.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";
import { protectedBy, startIssuer } from "./stub/issuer.ts";

// Tokens come from functions and stores of the program: a vault that does not answer, a file on a share that is gone. A call that
// waits for one ends with its time, with its signal and with the client, and nobody waits for ever.

closeAfterEach();
const never = (): Promise<never> => new Promise(() => {});
const hungStore: TokenStore = { durable: false, get: never, set: never, exclusively: never };
const hung = { "a function": () => bearer(never), "a store": () => oauth({ store: hungStore }) };

describe.each(Object.entries(hung))("a call whose token comes from %s that never answers", (_, auth) => {
  const open = async () => connect({ s: { ...(await start(stubHttp())).config, auth: auth() } });

  it("ends with its time", async () => {
    const client = await open();
    await expect(client.callTool("s", "t", {}, { timeoutMs: 200 })).rejects.toMatchObject({
      code: "timeout",
      maybeExecuted: false,
      message: expect.stringContaining("its auth did not say within 200 ms"),
    });
  });
  it("ends with its signal", async () => {
    const client = await open();
    const signal = AbortSignal.timeout(100);
    await expect(client.callTool("s", "t", {}, { signal })).rejects.toMatchObject({ code: "cancelled" });
  });
  it("ends with the client", async () => {
    const client = await open();
    const calling = client.callTool("s", "t").catch((error: { code: string }) => error.code);
    await new Promise((resolve) => setTimeout(resolve, 50));
    await client.close();
    expect(await calling).toBe("closed");
  });
});

describe("a function or a store of the program that never answers", () => {
  it("is given up by whoever has no time of its own", async () => {
    vi.useFakeTimers();
    try {
      const target = { server: "s", config: { url: "http://127.0.0.1:1/mcp" }, signal: new AbortController().signal };
      for (const auth of Object.values(hung)) {
        const asked = auth()
          .open(target)
          .credential()
          .catch((error: unknown) => error);
        await vi.advanceTimersByTimeAsync(OWN_WORK_MS);
        expect(await asked).toMatchObject({ name: "AuthError", code: "token_unavailable", retryable: true });
      }
    } finally {
      vi.useRealTimers();
    }
  });
  it("fails with the reason where it gives one, once for the store and once for the function", async () => {
    const issuer = await start(startIssuer());
    const server = await start(stubHttp({ onHttp: protectedBy(() => issuer) }));
    const fails = () => Promise.reject(new Error("the vault is sealed"));
    for (const auth of [
      bearer(fails),
      workloadIdentity({ token: fails }),
      oauth({ store: { ...hungStore, get: fails } }),
    ]) {
      const client = connect({ s: { ...server.config, auth } });
      await expect(client.callTool("s", "t")).rejects.toMatchObject({
        code: "token_unavailable",
        message: expect.stringContaining("the vault is sealed"),
      });
    }
  });
});
