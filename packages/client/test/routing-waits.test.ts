// How long requests wait for replicas that do not answer, and for the one that is tried out.
import type { TenonError } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { retry } from "../src/interceptors/index.ts";
import { replica, said } from "./replicas-scene.ts";
import { closeAfterEach, connect, start, stubHttp } from "./stub/index.ts";

closeAfterEach();

describe("a call to replicas of which none answers", () => {
  it("does not look for a replica many times as long as one connection may take", async () => {
    const silent = await start(stubHttp({ onHttp: () => true }));
    const places = Array.from({ length: 20 }, (_, n) => ({ url: silent.url, id: `silent-${n}` }));
    const client = connect({ kb: { replicas: places, connectTimeoutMs: 100 } });
    const error = await said(client, "look", "x").catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "no_replica", retryable: true, maybeExecuted: false });
    const { replicas } = (error as TenonError).data as { replicas: unknown[] };
    expect(replicas.length).toBeLessThan(6);
  });
});

describe("the only replica that is left alone", () => {
  it("names no time while one call tries it, and retry waits as it always does", async () => {
    const a = await replica("a");
    const client = connect(
      { kb: { replicas: [a.url], breaker: { failures: 0, openMs: 50 } } },
      { interceptors: [retry({ maxAttempts: 5, initialDelayMs: 100 })] },
    );
    await client.listTools();
    a.behave((_, reply) => reply.http(500, {}, "out of order"));
    await expect(said(client, "spend", "x")).rejects.toMatchObject({ code: "http_error" });
    await new Promise((resolve) => setTimeout(resolve, 60));
    const ends: (() => void)[] = [];
    a.behave(async (_, reply) => {
      await new Promise<void>((resolve) => ends.push(resolve));
      reply.result({ content: [{ type: "text", text: "well" }] });
    });
    const trial = said(client, "spend", "x");
    await expect.poll(() => ends.length).toBe(1);
    const other = said(client, "look", "y");
    const plain = connect({ kb: { replicas: [a.url] } }); // its own breaker
    expect(await Promise.race([other, plain.listTools().then(() => "waits")])).toBe("waits");
    a.behave(undefined);
    for (const end of ends) end();
    expect(await Promise.all([trial, other])).toEqual(["well", "a saw y"]);
  });
});
