import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Buffered, eventBuffer } from "./stream-buffer.ts";

type Event = Buffered & { n: number };

const event = fc
  .record({
    type: fc.constantFrom("text", "call-args", "progress", "log", "tool-end", "question"),
    id: fc.constantFrom("a", "b"),
    delta: fc.string({ minLength: 1, maxLength: 5 }),
  })
  .map(({ type, id, delta }, n?: number): Event => {
    const base = { type, n: n ?? 0 };
    if (type === "text") return { ...base, messageId: id, delta };
    if (type === "call-args") return { ...base, toolCallId: id, delta };
    return { ...base, toolCallId: id };
  });

function drain(buffer: { take(): Event | undefined }): Event[] {
  const out: Event[] = [];
  for (let next = buffer.take(); next; next = buffer.take()) out.push(next);
  return out;
}

describe("events nobody reads yet", () => {
  it("keep every text, result and question in order; only logs and old progress go", () => {
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), fc.integer({ min: 1, max: 20 }), (given, capacity) => {
        const buffer = eventBuffer<Event>(capacity, 12);
        const pushed = given.map((item, n) => ({ ...item, n }));
        for (const item of pushed) buffer.push(item);
        const out = drain(buffer);
        const textOf = (events: Event[], type: string, id: string) =>
          events
            .filter((item) => item.type === type && (item.messageId ?? item.toolCallId) === id)
            .map((item) => item.delta)
            .join("");
        for (const type of ["text", "call-args"]) {
          for (const id of ["a", "b"]) expect(textOf(out, type, id)).toBe(textOf(pushed, type, id));
        }
        const kept = (events: Event[]) =>
          events.filter(({ type }) => type === "tool-end" || type === "question").map(({ n }) => n);
        expect(kept(out)).toEqual(kept(pushed));
        const logs = (events: Event[]) => events.filter(({ type }) => type === "log").length;
        expect(logs(out) + buffer.lost).toBe(logs(pushed));
        for (const id of ["a", "b"]) {
          const progress = (events: Event[]) =>
            events.filter((item) => item.type === "progress" && item.toolCallId === id).map(({ n }) => n);
          expect(progress(out).at(-1)).toBe(progress(pushed).at(-1));
          if (pushed.length <= capacity / 2) expect(progress(out)).toEqual(progress(pushed));
        }
        expect(out.every(({ delta = "" }) => delta.length <= 12)).toBe(true);
      }),
    );
  });

  it("stay within the capacity when servers only chatter", () => {
    const buffer = eventBuffer<Event>(10, 100);
    for (let n = 0; n < 10_000; n += 1) {
      buffer.push({ type: "log", n });
      buffer.push({ type: "progress", toolCallId: "a", n });
    }
    expect(drain(buffer)).toHaveLength(10);
  });

  it("of a reader who keeps up are all told, in their order", () => {
    const buffer = eventBuffer<Event>(10, 100);
    const types = ["log", "progress", "log", "progress", "text"];
    for (const [n, type] of types.entries()) buffer.push({ type, toolCallId: "a", delta: "x", n });
    expect(drain(buffer).map((item) => item.type)).toEqual(types);
  });

  it("wake the reader who waits", async () => {
    const buffer = eventBuffer<Event>(10, 100);
    const ready = buffer.ready();
    buffer.push({ type: "log", n: 1 });
    await ready;
    await buffer.ready();
    expect(buffer.take()).toMatchObject({ n: 1 });
    expect(buffer.take()).toBeUndefined();
  });
});
