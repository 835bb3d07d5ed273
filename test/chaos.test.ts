import { spawnSync } from "node:child_process";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { createRandom } from "../chaos/random.ts";
import { openRelay } from "../chaos/relay.ts";
import { type Breakable, scheduleFaults } from "../chaos/schedule.ts";
import { root } from "./pages.ts";

const breakable: Breakable = {
  processes: ["order-1", "agent-1"],
  relays: ["agent-1"],
  clocks: ["order-1"],
  weights: { kill: 72, cut: 12, clock: 6, disk: 4, race: 6 },
};

describe("the faults of a run", () => {
  it("hold each kind at least once, and enough kills", () => {
    const faults = scheduleFaults(createRandom(3), 120, breakable);
    expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(["kill", "cut", "clock", "disk", "race"]));
    expect(faults.filter(({ kind }) => kind === "kill").length).toBeGreaterThan(50);
    expect(faults.every(({ atMs }) => atMs < 120_000)).toBe(true);
  });
  it("set clocks hours ahead and hours back", () => {
    const jumps = scheduleFaults(createRandom(4), 2_000, breakable).flatMap((fault) =>
      fault.kind === "clock" ? [fault.jumpMs] : [],
    );
    expect(Math.max(...jumps)).toBe(2 * 3_600_000);
    expect(Math.min(...jumps)).toBe(-2 * 3_600_000);
  });
  it("leave out what the machine cannot do", () => {
    const { disk: _, ...weights } = breakable.weights;
    expect(scheduleFaults(createRandom(5), 600, { ...breakable, weights }).some(({ kind }) => kind === "disk")).toBe(
      false,
    );
  });
});

describe("what stands between two processes", () => {
  it("tells of an answer before it goes on, and can keep it back by cutting", async () => {
    const server = createServer((socket) => socket.on("data", () => socket.write("answer")));
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = server.address();
    const relay = await openRelay(() => (address && typeof address === "object" ? [address.port] : []));
    const client = connect(relay.port, "127.0.0.1");
    let heard = "";
    client.on("data", (chunk) => {
      heard += String(chunk);
    });
    client.on("error", () => undefined);
    client.write("one");
    await expect.poll(() => heard).toBe("answer");
    relay.next("answer", relay.cut);
    client.write("two");
    await new Promise<void>((resolve) => client.once("close", () => resolve()));
    expect(heard).toBe("answer");
    await relay.close();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
});

describe("the command line", () => {
  it.each([
    ["--database", "oracle"],
    ["--sabotage", "nothing"],
    ["--seconds", "soon"],
    ["--speed", "1"],
  ])("refuses %s %s in one line, before anything is started", (flag, value) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["--import", "tsx", join(root, "chaos/run.ts"), flag, value],
      { cwd: root, encoding: "utf8" },
    );
    expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
    expect(stderr).toMatch(/^chaos: .+\n$/);
  });
});
