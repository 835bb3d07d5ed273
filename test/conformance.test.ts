import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { readBaseline } from "../conformance/baseline.ts";
import { FINISHED, readOutcomes, type Side, verdict } from "../conformance/results.ts";
import { root } from "./pages.ts";

const out = mkdtempSync(join(tmpdir(), "tenon-outcomes-"));
afterAll(() => rmSync(out, { recursive: true, force: true }));

function outcome(path: string, ...statuses: string[]): string {
  const folder = join(out, `${path}-2026-11-29T22-17-46-445Z`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "checks.json"), JSON.stringify(statuses.map((status) => ({ id: "check", status }))));
  return folder;
}
const read = (side: Side, ...names: string[]) => readOutcomes(out, names, side);

describe("the conformance runner", () => {
  it("counts a scenario as passed only when a check succeeded and none failed", () => {
    outcome("server-ping", "SUCCESS", "INFO");
    outcome("server-tools-list", "SUCCESS", "FAILURE");
    outcome("server-tools-list-more", "SUCCESS");
    outcome("server-skipped", "SKIPPED", "WARNING");
    const names = ["ping", "tools-list", "tools-list-more", "skipped", "never-ran"];
    const kinds = read("server", ...names).map((scenario) => verdict(scenario, undefined));
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
    const [ping, list] = read("server", "ping", "tools-list").map((scenario) => verdict(scenario, known));
    expect(list).toEqual({ kind: "known", note: "known: not built yet" });
    expect(ping).toEqual({ kind: "failed", note: "✗ passes now: take line 3 out of baseline.txt" });
  });
  it("fails a client that broke off, whatever the suite saw of it until then", () => {
    writeFileSync(join(outcome("initialize", "SUCCESS"), "stdout.txt"), `listening\n${FINISHED}\n`);
    const broken = outcome("auth/dpop", "SUCCESS");
    writeFileSync(join(broken, "stdout.txt"), "");
    writeFileSync(join(broken, "stderr.txt"), "TypeError: no token\n");
    const [whole, half] = read("client", "initialize", "auth/dpop");
    expect(whole).toMatchObject({ passed: 1, failed: 0, checks: [{ id: "check" }] });
    expect(half).toMatchObject({ passed: 1, failed: 1 });
    expect(half?.checks[1]).toEqual({ id: "client-finished", status: "FAILURE", message: "TypeError: no token" });
  });
  it("has a reason on every line of its baseline", () => {
    expect(readBaseline(join(root, "conformance/baseline.txt"))).toBeInstanceOf(Map);
    const bare = join(out, "bare.txt");
    writeFileSync(bare, "# comment\n2026-07-28 ping:\n");
    expect(() => readBaseline(bare)).toThrow('bare.txt:2 is not "revision scenario: reason"');
  });
});
