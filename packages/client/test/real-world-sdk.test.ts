// Servers written with the official SDK as its documentation shows it, both revisions, over stdio and HTTP.
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import {
  type Client,
  createClient,
  type ElicitationRequest,
  type LogEvent,
  type ProgressEvent,
  renderText,
  type ServerConfig,
} from "../src/index.ts";
import { child } from "./child.ts";
import { type Listening, legacy, modern } from "./servers.ts";

const LANES = [
  ["modern", "HTTP"],
  ["legacy", "HTTP"],
  ["modern", "stdio"],
  ["legacy", "stdio"],
] as const;

describe.each(LANES)("an SDK server of the %s era over %s", (era, transport) => {
  const questions: ElicitationRequest[] = [];
  let listening: Listening | undefined;
  let config: ServerConfig;
  let client: Client;
  beforeAll(async () => {
    if (transport === "HTTP") {
      listening = await (era === "modern" ? modern() : legacy());
      config = { url: listening.url, required: true };
    } else {
      config = { ...child(...(era === "legacy" ? ["legacy"] : [])), required: true };
    }
    const elicitation = (question: ElicitationRequest) => {
      questions.push(question);
      return { action: "accept", content: { ok: true } } as const;
    };
    client = createClient({ servers: { sdk: config }, elicitation });
  });
  afterEach(() => {
    questions.length = 0;
  });
  afterAll(async () => {
    await client.close();
    await listening?.kill();
  });

  it("is listed, called, and asks", async () => {
    const names = (await client.listTools()).map(({ wireName }) => wireName);
    expect(names).toEqual(expect.arrayContaining(["add", "ask", "echo", "fail", "sample", "work"]));
    expect(client.servers()).toMatchObject([{ health: "up", era }]);
    expect((await client.callTool("sdk", "add", { a: 2, b: 40 })).structured).toEqual({ sum: 42 });
    expect((await client.callTool("sdk", "fail")).isError).toBe(true);
    const asked = await client.callTool("sdk", "ask");
    expect(renderText(asked.content)).toBe("accept:true");
    expect(questions).toMatchObject([{ mode: "form", fields: [{ name: "ok", kind: "boolean" }] }]);
  });

  it("reports progress and logs of a call", async () => {
    const progress: ProgressEvent[] = [];
    const logs: LogEvent[] = [];
    await client.callTool(
      "sdk",
      "work",
      { label: "sort", steps: 3, ms: 5 },
      { onProgress: (event) => void progress.push(event), onLog: (event) => void logs.push(event) },
    );
    expect(progress.map(({ progress: step, total, message }) => [step, total, message])).toEqual([
      [1, 3, "sort"],
      [2, 3, "sort"],
      [3, 3, "sort"],
    ]);
    await expect.poll(() => logs.length).toBe(3);
    expect(logs[0]).toMatchObject({ level: "info", logger: "worker", data: { label: "sort", step: 1 } });
  });

  it("is refused when it wants a model of the client, and goes on working", async () => {
    const outcome = await client.callTool("sdk", "sample").then(
      ({ isError, content }) => ({ isError, text: renderText(content) }),
      (error: Error) => ({ isError: true, text: error.message }),
    );
    expect(outcome.isError).toBe(true);
    expect(outcome.text).toMatch(/sampling|does not offer/);
    expect(renderText((await client.callTool("sdk", "echo", { text: "still here" })).content)).toBe("still here");
  });

  it("gives its resources and prompts", async () => {
    expect((await client.listResources()).map(({ uri }) => uri)).toEqual(["company://policy", "company://logo"]);
    const [policy, logo] = await client.readResources("sdk");
    expect(policy?.asString()).toBe("# Policy");
    expect([...(logo?.asBytes() ?? [])]).toEqual([1, 2, 3]);
    const [message] = await client.getPrompt("sdk", "hello", { name: "Ada" });
    expect(message?.content).toEqual({ type: "text", text: "Hello Ada" });
  });
});
