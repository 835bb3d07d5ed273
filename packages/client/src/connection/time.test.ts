import { expect, it } from "vitest";
import { backoff } from "./time.ts";

it("waits grow to about twice the last one, never above their limit, and begin anew after a success", () => {
  const waits = backoff({ firstMs: 100, mostMs: 500 });
  const around = [100, 200, 400, 500, 500];
  for (const ms of around) {
    const wait = waits.next();
    expect(wait).toBeGreaterThanOrEqual(ms * 0.75);
    expect(wait).toBeLessThanOrEqual(Math.min(500, ms * 1.25));
  }
  waits.reset();
  expect(waits.next()).toBeLessThanOrEqual(125);
});
