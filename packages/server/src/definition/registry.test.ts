import { describe, expect, it } from "vitest";
import { alice, root } from "../../test/ask.ts";
import type { Caller } from "../handler/context.ts";
import type { Viewer } from "./access.ts";
import { createRegistry } from "./registry.ts";

const as = (caller: Caller): Viewer => ({
  caller,
  era: "modern",
  client: { capabilities: {} },
  headers: new Headers(),
  meta: {},
});

describe("lists that depend on the caller", () => {
  it("are one for callers who see the same, and never shared between those who do not", () => {
    const registry = createRegistry();
    registry.addTool("open", {}, () => 1);
    registry.addTool("refund", { scopes: ["orders:refund"] }, () => 1);
    registry.addTool("mine", { visible: (caller) => caller?.subject === "carol" }, () => 1);
    const names = (viewer: Viewer): string[] => registry.listsFor(viewer).tools.modern.map(({ name }) => name);
    const bob: Caller = { ...alice, subject: "bob" };
    const carol: Caller = { ...alice, subject: "carol" };
    expect(registry.listsFor(as(alice))).toBe(registry.listsFor(as(bob)));
    expect([alice, root, carol].map((caller) => names(as(caller)))).toEqual([
      ["open"],
      ["open", "refund"],
      ["mine", "open"],
    ]);
    registry.addTool("late", {}, () => 1);
    expect(names(as(alice))).toEqual(["late", "open"]);
  });
  it("are kept in a bounded number", () => {
    const registry = createRegistry();
    for (let i = 0; i < 40; i++) registry.addTool(`t${i}`, { scopes: [`s${i}`] }, () => 1);
    for (let i = 0; i < 40; i++) {
      const listed = registry.listsFor(as({ ...alice, scopes: [`s${i}`] })).tools.legacy;
      expect(listed.map(({ name }) => name)).toEqual([`t${i}`]);
    }
  });
});
