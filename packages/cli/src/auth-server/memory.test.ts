import { afterEach, describe, expect, it, vi } from "vitest";
import { Memory } from "./memory.ts";

afterEach(() => {
  vi.useRealTimers();
});

describe("what the authorization server remembers", () => {
  it("ends with its time", async () => {
    vi.useFakeTimers();
    const codes = new Memory().adapter("AuthorizationCode");
    await codes.upsert("a", { kind: "AuthorizationCode" }, 60);
    vi.advanceTimersByTime(59_000);
    expect(await codes.find("a")).toBeTruthy();
    vi.advanceTimersByTime(2_000);
    expect(await codes.find("a")).toBeUndefined();
  });
  it("is of one kind, and knows what was used", async () => {
    const memory = new Memory();
    const tokens = memory.adapter("RefreshToken");
    await tokens.upsert("a", { grantId: "g" }, 60);
    expect(await memory.adapter("AuthorizationCode").find("a")).toBeUndefined();
    await tokens.consume("a");
    expect((await tokens.find("a"))?.consumed).toBeGreaterThan(0);
    await tokens.consume("unknown");
  });
  it("is forgotten by grant, by id, and found by uid", async () => {
    const memory = new Memory();
    const tokens = memory.adapter("RefreshToken");
    await tokens.upsert("a", { grantId: "g" }, 60);
    await tokens.upsert("b", { grantId: "g" }, 60);
    await tokens.upsert("c", { grantId: "h" }, 60);
    await tokens.revokeByGrantId("g");
    expect(await Promise.all(["a", "b", "c"].map(async (id) => Boolean(await tokens.find(id))))).toEqual([
      false,
      false,
      true,
    ]);
    await tokens.destroy("c");
    expect(await tokens.find("c")).toBeUndefined();
    const sessions = memory.adapter("Session");
    await sessions.upsert("s", { uid: "u" }, 60);
    expect(await sessions.findByUid("u")).toEqual({ uid: "u" });
    expect(await sessions.findByUid("v")).toBeUndefined();
  });
  it("has room for 5,000 of a kind: what has ended goes first, then the oldest", async () => {
    vi.useFakeTimers();
    const clients = new Memory().adapter("Client");
    await clients.upsert("kept", {}, 1_000_000);
    await clients.upsert("ended", {}, 1);
    vi.advanceTimersByTime(2_000);
    for (let n = 0; n < 4_999; n += 1) await clients.upsert(`n${n}`, {}, 1_000_000);
    expect(await clients.find("kept")).toBeTruthy();
    await clients.upsert("one more", {}, 1_000_000);
    expect(await clients.find("kept")).toBeUndefined();
    expect(await clients.find("n0")).toBeTruthy();
  });
});
