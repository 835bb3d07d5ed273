import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { firstSentence, referencePages } from "../scripts/reference.ts";
import { readSurface } from "../scripts/surface.ts";
import { root } from "./pages.ts";

const surface = readSurface();
const exported = surface.flatMap(({ address, exports }) =>
  exports.map((one) => ({ ...one, at: `${address} ${one.name}` })),
);

describe("what can be imported", () => {
  it("has a docstring", () => {
    expect(exported.filter(({ doc }) => doc === "").map(({ at }) => at)).toEqual([]);
  });
  it("has one for every option, and for everything it gives to work with", () => {
    const silent = exported.flatMap(({ at, fields }) =>
      fields.filter(({ doc }) => doc === "").map(({ name }) => `${at}.${name}`),
    );
    expect(silent).toEqual([]);
  });
  it("is not what packages share with each other", () => {
    expect(surface.filter(({ address }) => address.includes("internal"))).toEqual([]);
  });
  it("has no duration in seconds or without a unit", () => {
    const times = exported.flatMap(({ at, fields }) =>
      fields
        .filter(({ name }) => /(seconds|timeout|delay|ttl|interval)$/i.test(name))
        .map(({ name }) => `${at}.${name}`),
    );
    // names of the packages that people come from, and of LangGraph
    const others = times.filter((name) => !/defaultToolTimeout$|^@tenon\/agent\/sqlite-store /.test(name));
    expect(others).toEqual([]);
  });
});

describe("the reference", () => {
  const folder = join(root, "docs/reference");
  const pages = referencePages(surface);
  it.each([...pages])("%s is what the docstrings say; `npm run reference` writes it", (file, text) => {
    const path = join(folder, file);
    expect(existsSync(path) && readFileSync(path, "utf8")).toBe(text);
  });
  it("has no page of a package that is gone", () => {
    expect(readdirSync(folder).sort()).toEqual([...pages.keys()].sort());
  });
  it("takes the first sentence, to its end", () => {
    expect(firstSentence("Reads a file, e.g. `a.json`. Then more.\n\nAnd more.")).toBe("Reads a file, e.g. `a.json`.");
    expect(firstSentence("One of\nseveral lines")).toBe("One of several lines");
  });
});
