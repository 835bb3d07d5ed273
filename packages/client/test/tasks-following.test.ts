import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest";
import { type ProgressEvent, renderText, type ToolCallOutcome } from "../src/index.ts";
import { type Listening, listen } from "./servers.ts";
import { closeAfterEach, connect } from "./stub/index.ts";
import { readKept, taskHandler } from "./tasks-server.ts";

closeAfterEach();

const folder = mkdtempSync(join(tmpdir(), "tenon-tasks-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let server: Listening;
let file: string;
let files = 0;
beforeEach(async () => {
  file = join(folder, `${++files}.json`);
  server = await listen(taskHandler(file));
});
afterEach(() => server.kill());

const said = (outcome: ToolCallOutcome) => JSON.parse(renderText(outcome.content)) as Record<string, unknown>;
const methods = () => readKept(file).log.map(({ method }) => method);

describe("a call that becomes a task", () => {
  it("is followed to its end, with progress on the way", async () => {
    const client = connect({ s: { url: server.url } });
    const heard: [ProgressEvent, unknown][] = [];
    const outcome = await client.callTool(
      "s",
      "work",
      { label: "books", ms: 500, counts: true },
      { onProgress: (event, source) => heard.push([event, source]) },
    );
    expect(said(outcome)).toEqual({ done: "books", answers: {} });
    expect(heard.length).toBeGreaterThan(1);
    expect(heard[0]?.[0]).toMatchObject({ total: 500, message: "counting", percent: expect.any(Number) });
    expect(heard[0]?.[1]).toEqual({ server: "s", tool: "work", callId: "call-1", taskId: expect.any(String) });
    const numbers = heard.map(([{ progress }]) => progress);
    expect(numbers).toEqual([...numbers].sort((a, b) => a - b));
    expect(methods().filter((method) => method === "tools/call")).toHaveLength(1);
  });
});
