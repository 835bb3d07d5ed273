import { describe, expect, it } from "vitest";
import { describes } from "./discovery.ts";

describe("metadata of a protected resource", () => {
  const own = new URL("https://host.example/a/mcp");
  const at = (path: string): URL => new URL(path, own);
  const known = "/.well-known/oauth-protected-resource";

  it.each([
    ["https://host.example/a/mcp", `${known}/a/mcp`],
    ["https://host.example/a/mcp", "/a/metadata.json"], // the challenge may name any place for it
    ["https://host.example/a/mcp/", known],
    ["https://host.example", known],
    ["https://host.example/", `${known}/`],
    ["https://host.example/a", `${known}/a`],
  ])("speaks of the server as %s at %s", (resource, place) => {
    expect(describes(resource, own, at(place))).toBe(true);
  });
  it.each([
    ["https://host.example/", "/a/metadata.json"],
    ["https://host.example/", `${known}/a/mcp`],
    ["https://host.example/a", known],
    ["https://host.example/a/mc", `${known}/a/mc`],
    ["https://host.example/a/mcp/more", `${known}/a/mcp/more`],
    ["https://host.example/b/mcp", `${known}/b/mcp`],
    ["https://other.example/a/mcp", `${known}/a/mcp`],
    ["https://other.example/", `https://other.example${known}`],
    ["urn:everything", known],
    ["everything", known],
  ])("does not as %s at %s", (resource, place) => {
    expect(describes(resource, own, at(place))).toBe(false);
  });
});
