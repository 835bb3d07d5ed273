import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { Shelf } from "./shelf.ts";

it("what was unused longest gives way when there are too many", () => {
  const shelf = new Shelf<number>(2, 100);
  shelf.set("a", 1, 1, 60_000);
  shelf.set("b", 2, 1, 60_000);
  expect(shelf.get("a")).toBe(1);
  shelf.set("c", 3, 1, 60_000);
  expect(["a", "b", "c"].map((place) => shelf.get(place))).toEqual([1, undefined, 3]);
});

it("the size of all together is bounded, and what is replaced no longer counts", () => {
  const shelf = new Shelf<string>(10, 100);
  for (let i = 0; i < 5; i++) shelf.set("a", "again", 60, 60_000);
  shelf.set("b", "small", 40, 60_000);
  expect([shelf.get("a"), shelf.get("b")]).toEqual(["again", "small"]);
  shelf.set("c", "one too many", 1, 60_000);
  expect([shelf.get("a"), shelf.get("b"), shelf.get("c")]).toEqual([undefined, "small", "one too many"]);
  shelf.set("d", "larger than everything", 101, 60_000);
  expect(shelf.get("d")).toBeUndefined();
});

it("nothing is given again when its time has ended", async () => {
  const shelf = new Shelf<number>(10, 100);
  shelf.set("a", 1, 1, 20);
  expect(shelf.get("a")).toBe(1);
  await sleep(40);
  expect(shelf.get("a")).toBeUndefined();
});
