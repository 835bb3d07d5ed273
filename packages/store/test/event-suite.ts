import { setTimeout as sleep } from "node:timers/promises";
import type { Json } from "@tenon/core";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { EventBus, Stores } from "../src/index.ts";
import { eventually } from "./task-help.ts";

let serial = 0;
const fresh = (): string => `topic ${process.pid} ${Date.now()} ${serial++}`;

/** What every event bus must do; run against each of them. */
export function eventSuite(kind: string, open: () => Stores): void {
  describe(`events in ${kind}`, () => {
    let stores: Stores;
    let events: EventBus;
    beforeAll(() => {
      stores = open();
      events = stores.events;
    });
    afterAll(() => stores.close());

    it("reach every listener of their topic in order, and no other", async () => {
      const topic = fresh();
      const heard: Json[][] = [[], [], []];
      const ends = [
        events.subscribe(topic, (message) => heard[0]?.push(message)),
        events.subscribe(topic, (message) => heard[1]?.push(message)),
        events.subscribe(fresh(), (message) => heard[2]?.push(message)),
      ];
      for (let i = 0; i < 20; i++) await events.publish(topic, { i, text: "ä \u0000 日本" });
      await eventually(() => (heard[1]?.length === 20 ? true : undefined));
      const sent = Array.from({ length: 20 }, (_, i) => ({ i, text: "ä \u0000 日本" }));
      expect(heard).toEqual([sent, sent, []]);
      for (const end of ends) end();
    });
    it("are not heard by those who stopped, and the same function may listen twice", async () => {
      const topic = fresh();
      let heard = 0;
      const listener = () => {
        heard += 1;
      };
      const [one, two] = [events.subscribe(topic, listener), events.subscribe(topic, listener)];
      await events.publish(topic, 1);
      await eventually(() => (heard === 2 ? true : undefined));
      one();
      one();
      await events.publish(topic, 2);
      await eventually(() => (heard === 3 ? true : undefined));
      two();
      await events.publish(topic, 3);
      await sleep(100);
      expect(heard).toBe(3);
    });
    it("go on when a listener throws, which is reported", async () => {
      const topic = fresh();
      const warn = vi.spyOn(process, "emitWarning").mockImplementation(() => undefined);
      const heard: Json[] = [];
      const ends = [
        events.subscribe(topic, () => {
          throw new Error("listener failed");
        }),
        events.subscribe(topic, (message) => heard.push(message)),
      ];
      await events.publish(topic, "a");
      await events.publish(topic, "b");
      await eventually(() => (heard.length === 2 ? true : undefined));
      expect(warn).toHaveBeenCalledWith(expect.objectContaining({ message: "listener failed" }));
      warn.mockRestore();
      for (const end of ends) end();
    });
    it("of listeners come after what is being told", async () => {
      const topic = fresh();
      const heard: Json[] = [];
      const ends = [
        events.subscribe(topic, (message) => {
          if (message === 1) void events.publish(topic, 2);
        }),
        events.subscribe(topic, (message) => heard.push(message)),
      ];
      await events.publish(topic, 1);
      await eventually(() => (heard.length === 2 ? true : undefined));
      expect(heard).toEqual([1, 2]);
      for (const end of ends) end();
    });
    it("belong to nobody: what a listener does to one changes no other's", async () => {
      const topic = fresh();
      const message = { list: [1] };
      const heard: Json[] = [];
      const end = events.subscribe(topic, (got) => heard.push(got));
      await events.publish(topic, message);
      message.list.push(2);
      await eventually(() => (heard.length === 1 ? true : undefined));
      expect(heard).toEqual([{ list: [1] }]);
      end();
    });
    it("travel up to their limits, and are refused beyond them", async () => {
      const topic = "t".repeat(200);
      const heard: Json[] = [];
      const end = events.subscribe(topic, (message) => heard.push(message));
      await events.publish(topic, "x".repeat(6_998));
      await eventually(() => (heard.length === 1 ? true : undefined));
      await expect(events.publish(topic, "x".repeat(6_999))).rejects.toMatchObject({
        name: "ConfigError",
        code: "event",
      });
      await expect(events.publish(topic, "ä".repeat(3_500))).rejects.toThrow("7002 bytes as JSON");
      await expect(events.publish(`${topic}t`, 1)).rejects.toThrow("given 201 characters");
      await expect(events.publish("", 1)).rejects.toMatchObject({ code: "event" });
      await expect(events.publish("\u0001".repeat(200), "x".repeat(6_998))).rejects.toMatchObject({ code: "event" });
      await expect(events.publish(topic, undefined as never)).rejects.toThrow("must be JSON");
      expect(() => events.subscribe("", () => undefined)).toThrow("1 to 200 characters");
      expect(() => events.subscribe(topic, () => undefined, { onGab: 1 } as never)).toThrow('did you mean "onGap"?');
      end();
    });
    it("end with their bus, and the other stores go on", async () => {
      const other = open();
      let heard = 0;
      const topic = fresh();
      other.events.subscribe(topic, () => {
        heard += 1;
      });
      await other.events.close();
      await other.events.close();
      await events.publish(topic, 1);
      await expect(other.events.publish(topic, 1)).rejects.toMatchObject({ code: "store_closed" });
      other.events.subscribe(topic, () => undefined)();
      expect((await other.leases.acquire(topic, "me", 1_000)).state).toBe("yours");
      await other.close();
      expect(heard).toBe(0);
    });
  });
}
