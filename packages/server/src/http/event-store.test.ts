import { describe, expect, it } from "vitest";
import { SessionEvents } from "./event-store.ts";

const message = (n: number) => ({ jsonrpc: "2.0" as const, method: "notifications/message", params: { n } });

describe("the events of a session", () => {
  it("are replayed after the last one seen, of its stream only", async () => {
    const events = new SessionEvents();
    const first = await events.storeEvent("a", message(1));
    await events.storeEvent("b", message(2));
    await events.storeEvent("a", message(3));
    const sent: unknown[] = [];
    expect(await events.getStreamIdForEventId(first)).toBe("a");
    const stream = await events.replayEventsAfter(first, { send: async (_id, one) => void sent.push(one) });
    expect([stream, sent]).toEqual(["a", [message(3)]]);
  });
  it("are bounded in number and bytes", async () => {
    const few = new SessionEvents(2);
    const small = new SessionEvents(100, 200);
    for (let n = 0; n < 5; n++) {
      await few.storeEvent("a", message(n));
      await small.storeEvent("a", message(n));
    }
    expect(await few.getStreamIdForEventId("3")).toBeUndefined();
    expect(await few.getStreamIdForEventId("4")).toBe("a");
    expect(await small.getStreamIdForEventId("1")).toBeUndefined();
    await expect(few.replayEventsAfter("1", { send: async () => undefined })).rejects.toThrow("no longer kept");
  });
});
