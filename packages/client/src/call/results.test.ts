import type { ContentBlock } from "@modelcontextprotocol/client";
import { describe, expect, it } from "vitest";
import { progressEvent } from "../events.ts";
import { renderText, resultError, toToolResult } from "./results.ts";

describe("renderText", () => {
  it("describes every kind of content and drops none", () => {
    const content = [
      { type: "text", text: "hello" },
      { type: "image", data: "AQID", mimeType: "image/png" },
      { type: "audio", data: "AQIDBA==", mimeType: "audio/wav" },
      { type: "resource_link", uri: "file:///a.txt", name: "a", description: "the file" },
      { type: "resource", resource: { uri: "x://t", text: "inside" } },
      { type: "resource", resource: { uri: "x://b", blob: "AQID", mimeType: "image/gif" } },
      { type: "hologram", depth: 3 },
      { type: "image" },
      { type: "video", data: "AAAA", mimeType: "video/mp4" },
    ] as unknown as ContentBlock[];
    expect(renderText(content).split("\n")).toEqual([
      "hello",
      "[image, image/png, 3 bytes]",
      "[audio, audio/wav, 4 bytes]",
      '[link "a" file:///a.txt: the file]',
      "inside",
      "[resource x://b, image/gif, 3 bytes]",
      '[content of unknown type "hologram": {"type":"hologram","depth":3}]',
      "[image, unknown type, no data]",
      "[video, video/mp4, 3 bytes]",
    ]);
  });
  it("reads structured content only where there is nothing else", () => {
    expect(renderText([], { a: 1 })).toBe('{"a":1}');
    expect(renderText([{ type: "text", text: "t" }], { a: 1 })).toBe("t");
    expect(renderText([])).toBe("");
  });
});

describe("results", () => {
  it("are frozen and carry the answer as it came", () => {
    const raw = { content: [], structuredContent: { a: 1 }, _meta: { k: 1 } };
    const result = toToolResult(raw);
    expect(Object.isFrozen(result)).toBe(true);
    const content = [{ type: "text", text: '{"a":1}' }];
    expect(result).toEqual({ content, structured: { a: 1 }, isError: false, meta: { k: 1 }, raw });
    expect(resultError("s", "t", result)).toMatchObject({ message: '{"a":1}', data: { a: 1 }, code: "tool_error" });
  });
});

describe("progress", () => {
  it("has a percentage only with a positive total", () => {
    expect(progressEvent({ progress: 1, total: 3 })).toEqual({ progress: 1, total: 3, percent: 33.3 });
    expect(progressEvent({ progress: 5, total: 3 }).percent).toBe(100);
    expect(progressEvent({ progress: 5, total: 0 })).toEqual({ progress: 5, total: 0 });
    expect(progressEvent({ progress: 5 })).toEqual({ progress: 5 });
  });
});
