import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readBaseline } from "../conformance/baseline.ts";
import { readOutcomes, verdict } from "../conformance/results.ts";
import { root } from "./pages.ts";

const out = mkdtempSync(join(tmpdir(), "tenon-outcomes-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

function outcome(name: string, ...statuses: string[]): void {
  const folder = join(out, `server-${name}-2026-11-29T22-17-46-445Z`);
  mkdirSync(folder);
  writeFileSync(join(folder, "checks.json"), JSON.stringify(statuses.map((status) => ({ id: "check", status }))));
}

describe("the conformance runner", () => {
  it("counts a scenario as passed only when a check succeeded and none failed", () => {
    outcome("ping", "SUCCESS", "INFO");
    outcome("tools-list", "SUCCESS", "FAILURE");
    outcome("tools-list-more", "SUCCESS");
    outcome("skipped", "SKIPPED", "WARNING");
    const names = ["ping", "tools-list", "tools-list-more", "skipped", "never-ran"];
    const kinds = readOutcomes(out, names).map((scenario) => verdict(scenario, undefined));
    expect(kinds).toEqual([
      { kind: "passed" },
      { kind: "failed" },
      { kind: "passed" },
      { kind: "failed", note: "✗ no check ran" },
      { kind: "failed", note: "✗ no check ran" },
    ]);
  });
  it("lets a known failure through, and refuses a line that is no longer true", () => {
    const known = { line: 3, reason: "not built yet" };
    const [ping, list] = readOutcomes(out, ["ping", "tools-list"]).map((scenario) => verdict(scenario, known));
    expect(list).toEqual({ kind: "known", note: "known: not built yet" });
    expect(ping).toEqual({ kind: "failed", note: "✗ passes now: take line 3 out of baseline.txt" });
  });
  it("has a reason on every line of its baseline", () => {
    expect(readBaseline(join(root, "conformance/baseline.txt"))).toBeInstanceOf(Map);
    const bare = join(out, "bare.txt");
    writeFileSync(bare, "# comment\n2026-07-28 ping:\n");
    expect(() => readBaseline(bare)).toThrow('bare.txt:2 is not "revision scenario: reason"');
  });
});
