import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { run } from "./program.ts";

let stdout = "";
let stderr = "";
beforeEach(() => {
  stdout = "";
  stderr = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    stdout += text;
    return true;
  });
  vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    stderr += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

describe("the command line", () => {
  it.each([
    ["keys", "new"],
    ["keys", "show"],
    ["token"],
    ["auth-server"],
    ["audit", "verify"],
    ["audit", "tail"],
    ["audit", "export"],
  ])("explains %s %s with examples", async (...path) => {
    const command = path.filter((word) => word !== undefined);
    expect(await run([...command, "--help"])).toBe(0);
    expect(stdout).toContain("Examples:\n  tenon ");
    expect(stderr).toBe("");
  });
  it("lists its commands and exit codes", async () => {
    expect(await run(["--help"])).toBe(0);
    for (const word of [
      "keys",
      "token",
      "auth-server",
      "audit",
      "Exit codes: 0 done, 1 failed, 2 the command line is wrong",
    ]) {
      expect(stdout).toContain(word);
    }
  });
  it("without a command shows the help on stderr: exit code 2", async () => {
    expect([await run([]), stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: tenon");
    stderr = "";
    expect([await run(["keys"]), stdout]).toEqual([2, ""]);
    expect(stderr).toContain("Usage: tenon keys");
  });
  it.each<[string[], string]>([
    [["tokn"], "do:  did you mean token?"],
    [["keys", "nwe"], "do:  did you mean new?"],
    [["keys", "new", "--algo", "RS256"], "do:  did you mean --alg?"],
    [["keys", "new", "--alg", "HS256"], "--alg HS256 is for contracts"],
    [["auth-server", "--prot", "1"], "do:  did you mean --port?"],
    [["auth-server", "--port", "70000"], "from 0 to 65535"],
    [["keys", "show", "extra"], "too many arguments"],
  ])("says what is wrong with %j in three lines: exit code 2", async (args, message) => {
    expect([await run(args), stdout]).toEqual([2, ""]);
    expect(stderr).toContain(message);
    expect(stderr).toMatch(/^tenon[\w -]*: the command line is wrong\n {2}why: .+\n {2}do: {2}.+\n$/);
  });
  it("shows nothing of the terminal's own language that stands in an argument", async () => {
    await run(["\u001b[2Jtoken\u202e"]);
    expect(stderr).toContain("unknown command 'token'");
    for (const hidden of ["\u001b", "\u202e"]) expect(stderr).not.toContain(hidden);
  });
});
