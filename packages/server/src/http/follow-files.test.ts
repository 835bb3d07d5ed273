import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { followFiles, type Pace } from "./follow-files.ts";

const SOON = { timeout: 15_000 };
const NEVER_MS = 10 * 60_000;
let folder: string;
let end: () => void = () => undefined;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tenon-follow-"));
});
afterEach(() => {
  end();
  rmSync(folder, { recursive: true, force: true });
});

/** Counts looks. */
function follow(pace: Partial<Pace>, look: () => Promise<boolean> = async () => false): { looks: number } {
  const counted = { looks: 0 };
  end = followFiles(
    [join(folder, "a"), join(folder, "b")],
    () => {
      counted.looks += 1;
      return look();
    },
    { pollMs: NEVER_MS, settleMs: 1, retryMs: NEVER_MS, ...pace },
  );
  return counted;
}

describe("following files", () => {
  it("looks when something happens in their folder", async () => {
    const counted = follow({});
    writeFileSync(join(folder, "other"), "1");
    await expect.poll(() => counted.looks, SOON).toBeGreaterThan(0);
  });
  it("looks now and then, where the file system says nothing", async () => {
    rmSync(folder, { recursive: true });
    const counted = follow({ pollMs: 5 });
    await expect.poll(() => counted.looks, SOON).toBeGreaterThan(2);
  });
  it("goes on when the folder goes away", async () => {
    const counted = follow({ pollMs: 5 });
    rmSync(folder, { recursive: true });
    const then = counted.looks;
    await expect.poll(() => counted.looks, SOON).toBeGreaterThan(then + 2);
  });
  it("looks again soon when it is asked to", async () => {
    const counted = follow({ retryMs: 5 }, async () => counted.looks < 3);
    writeFileSync(join(folder, "a"), "1");
    await expect.poll(() => counted.looks, SOON).toBeGreaterThanOrEqual(3);
  });
  it("keeps what happens during a look for the next one", async () => {
    let release: () => void = () => undefined;
    const counted = follow({}, () => new Promise((resolve) => (release = () => resolve(false))));
    writeFileSync(join(folder, "a"), "1");
    await expect.poll(() => counted.looks, SOON).toBe(1);
    writeFileSync(join(folder, "a"), "2");
    await new Promise((resolve) => setTimeout(resolve, 50));
    expect(counted.looks).toBe(1); // one at a time
    release();
    await expect.poll(() => counted.looks, SOON).toBe(2);
    release();
  });
  it("is not put off by a folder in which something happens all the time", async () => {
    const counted = follow({ settleMs: 50 });
    const busy = setInterval(() => writeFileSync(join(folder, "log"), String(Math.random())), 5);
    await expect.poll(() => counted.looks, SOON).toBeGreaterThan(1);
    clearInterval(busy);
  });
  it("does not keep the process alive", () => {
    const before = process.getActiveResourcesInfo().sort();
    follow({});
    expect(process.getActiveResourcesInfo().sort()).toEqual(before);
  });
  it("ends", async () => {
    const counted = follow({ pollMs: 5 });
    await expect.poll(() => counted.looks, SOON).toBeGreaterThan(0);
    end();
    await new Promise((resolve) => setTimeout(resolve, 20)); // a look that had begun
    const then = counted.looks;
    writeFileSync(join(folder, "a"), "1");
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(counted.looks).toBe(then);
  });
});
