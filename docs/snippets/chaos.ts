import assert from "node:assert/strict";
// #region plan
import { createRandom } from "../../chaos/random.ts";
import { scheduleFaults } from "../../chaos/schedule.ts";

const plan = (seed: number) =>
  scheduleFaults(createRandom(seed).fork("faults"), 120, {
    processes: ["order-1", "order-2", "agent-1"],
    relays: ["agent-1"],
    clocks: ["agent-1"],
    weights: { kill: 72, cut: 12, clock: 6, race: 6 },
  });

assert.deepEqual(plan(7), plan(7)); // what breaks, and when, is decided before anything is started
// #endregion
assert.notDeepEqual(plan(7), plan(8));
assert.ok(plan(7).filter(({ kind }) => kind === "kill").length > 50);
for (const kind of ["kill", "cut", "clock", "race"])
  assert.ok(
    plan(7).some((fault) => fault.kind === kind),
    kind,
  );
