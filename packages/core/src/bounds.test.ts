import { describe, expect, it } from "vitest";
import { keepNewest, readBounded } from "./bounds.ts";

describe("what is kept of the newest", () => {
  it("loses the oldest first, and what is set again counts as new", () => {
    const kept = new Map<string, number>();
    for (const [name, value] of [
      ["a", 1],
      ["b", 2],
      ["a", 3],
      ["c", 4],
    ] as const)
      keepNewest(kept, name, value, 2);
    expect([...kept]).toEqual([
      ["a", 3],
      ["c", 4],
    ]);
  });
  it("comes back to its bound when that has become smaller", () => {
    const kept = new Map([1, 2, 3, 4].map((one) => [one, one]));
    keepNewest(kept, 5, 5, 2);
    expect([...kept.keys()]).toEqual([4, 5]);
  });
});

describe("reading a stream of bounded size", () => {
  it("gives its text, however its characters are cut", async () => {
    const bytes = new TextEncoder().encode("grüß dich 🙂");
    const parts = [...bytes].map((byte) => Uint8Array.of(byte));
    expect(await readBounded(parts, bytes.length)).toBe("grüß dich 🙂");
  });
  it("stops at the first part that is too much, and cancels the rest", async () => {
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(new Uint8Array(10)),
      cancel: () => {
        cancelled = true;
      },
    });
    expect(await readBounded(endless, 25)).toBeUndefined();
    expect(cancelled).toBe(true);
  });
  it("fails as the stream does", async () => {
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(new Error("cut off")) });
    await expect(readBounded(broken, 25)).rejects.toThrow("cut off");
  });
});
