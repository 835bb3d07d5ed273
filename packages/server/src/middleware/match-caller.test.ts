import { describe, expect, it } from "vitest";
import { z } from "zod";
import { alice, ask, call, root, said } from "../../test/ask.ts";
import { createServer } from "../index.ts";
import { type MatchCallerOptions, matchCaller } from "./match-caller.ts";

const serverWith = (options: MatchCallerOptions) => {
  const runs: unknown[] = [];
  const server = createServer({ name: "test", version: "1", logSink: () => undefined })
    .use(matchCaller(options))
    .tool("refund", { input: z.object({ order: z.string(), caller_id: z.string().default("") }) }, ({ caller_id }) => {
      runs.push(caller_id);
      return `for ${caller_id}`;
    })
    .tool("ping", {}, () => "pong")
    .prompt("p", { input: z.object({ caller_id: z.string() }) }, () => "p");
  return { server, runs };
};

describe("an argument that names the caller", () => {
  const subjectOf = (value: string): string => value.replace(/\(.*\)$/, "");

  it.each(["modern", "legacy"] as const)("must name the one the token is of (%s)", async (era) => {
    const { server, runs } = serverWith({ argument: "caller_id", subjectOf });
    const refund = (caller_id: unknown, caller = alice) =>
      call(server, "refund", { order: "1", caller_id }, { era, caller });
    expect(said(await refund("alice(Alice)"))).toBe("for alice(Alice)");
    const refused = await refund("alice(Alice)", root);
    expect(refused.result).toMatchObject({ isError: true, structuredContent: { code: "caller_mismatch" } });
    expect(said(refused)).toBe(
      'caller_id "alice(Alice)" is not the caller: the token is of "root". Leave it out, or call with that person\'s own token',
    );
    for (const forged of ["root", "root(alice)", "alice ", "Alice", " ", "(alice)", ["alice"], 1, {}, true]) {
      expect((await refund(forged)).result).toMatchObject({ structuredContent: { code: "caller_mismatch" } });
    }
    expect(runs).toEqual(["alice(Alice)"]);
  });

  it("may be left out, or be one a tool does not know", async () => {
    const { server, runs } = serverWith({ argument: "caller_id" });
    for (const caller_id of [undefined, ""]) await call(server, "refund", { order: "1", caller_id }, { caller: alice });
    expect(runs).toEqual(["", ""]);
    expect(said(await call(server, "ping", {}, { caller: alice }))).toBe("pong");
  });

  it("is compared with nothing where there is no token, and in nothing but tool calls", async () => {
    const { server, runs } = serverWith({ argument: "caller_id" });
    expect(said(await call(server, "refund", { order: "1", caller_id: "anybody" }))).toBe("for anybody");
    expect(runs).toEqual(["anybody"]);
    const prompt = { name: "p", arguments: { caller_id: "root" } };
    expect((await ask(server, "prompts/get", prompt, { caller: alice })).error).toBeUndefined();
  });

  it("may be refused in words of one's own", async () => {
    const { server } = serverWith({
      argument: "caller_id",
      message: (value, { caller }) => `${value} ≠ ${caller?.subject}`,
    });
    expect(said(await call(server, "refund", { order: "1", caller_id: "root" }, { caller: alice }))).toBe(
      "root ≠ alice",
    );
  });

  it("has to have a name", () => {
    expect(() => matchCaller({ argument: "" })).toThrow('needs the name of an argument, such as "caller_id"');
    expect(() => matchCaller({ argument: "a", subject: String } as never)).toThrow("subjectOf");
  });
});
