// Servers from the npm registry that others wrote, as published, over stdio and HTTP, without a network.
import { spawn } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type Client,
  createClient,
  type ElicitationRequest,
  type LogEvent,
  type ProgressEvent,
  renderText,
  type ServerConfig,
} from "../src/index.ts";

const modules = fileURLToPath(new URL("../../../node_modules/", import.meta.url));
const folder = realpathSync(mkdtempSync(join(tmpdir(), "tenon-real-world-")));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A published server as a child process; a busy machine starts it slowly. */
function published(program: string, args: string[] = [], env: Record<string, string> = {}): ServerConfig {
  return {
    command: process.execPath,
    args: [join(modules, program), ...args],
    env,
    cwd: folder,
    connectTimeoutMs: 15_000,
    required: true,
  };
}

const EVERYTHING = "@modelcontextprotocol/server-everything/dist/index.js";
const textOf = async (call: ReturnType<Client["callTool"]>) => {
  const { content, structured } = await call;
  return renderText(content, structured);
};
const namesOf = async (client: Client, server: string) =>
  (await client.listTools(server)).map(({ wireName }) => wireName);

describe("several published servers in one client", () => {
  const logs: string[] = [];
  let client: Client;
  beforeAll(() => {
    client = createClient({
      servers: {
        files: published("@modelcontextprotocol/server-filesystem/dist/index.js", [folder]),
        memory: published("@modelcontextprotocol/server-memory/dist/index.js", [], {
          MEMORY_FILE_PATH: join(folder, "memory.jsonl"),
        }),
        thinking: published("@modelcontextprotocol/server-sequential-thinking/dist/index.js"),
        lint: published("@eslint/mcp/src/mcp-cli.js"),
        tasks: published("@kazuph/mcp-taskmanager/dist/index.js", [], {
          TASK_MANAGER_FILE_PATH: join(folder, "tasks.json"),
        }),
      },
      events: { onServerState: ({ server, health }) => logs.push(`${server} ${health}`) },
    });
  });
  afterAll(() => client.close());

  it("are one catalog, each with all its tools", async () => {
    const tools = await client.listTools();
    const counts: Record<string, number> = {};
    for (const { server } of tools) counts[server] = (counts[server] ?? 0) + 1;
    expect(counts).toEqual({ files: 14, memory: 9, thinking: 1, lint: 1, tasks: 10 });
    expect(tools.map(({ name }) => name)).toContain("mcp_files_read_text_file");
    expect(client.servers().map(({ health, era, problems }) => ({ health, era, problems }))).toEqual(
      Array.from({ length: 5 }, () => ({ health: "up", era: "legacy", problems: [] })),
    );
    expect(logs).toContain("lint up");
  });

  it("keep to their limits: the file server reads its folder and nothing else", async () => {
    const path = join(folder, "note.txt");
    expect(await textOf(client.callTool("files", "write_file", { path, content: "milk\nbread\n" }))).toContain("wrote");
    expect(await textOf(client.callTool("files", "read_text_file", { path, head: 1 }))).toBe("milk");
    const edits = [{ oldText: "bread", newText: "rye" }];
    expect(await textOf(client.callTool("files", "edit_file", { path, edits, dryRun: true }))).toContain("+rye");
    const outside = await client.callTool("files", "read_text_file", { path: "/etc/hostname" });
    expect(outside.isError).toBe(true);
    expect(renderText(outside.content)).toContain("Access denied");
  });

  it("say what is wrong with the arguments in a result the model can read", async () => {
    const wrong = await client.callTool("files", "read_text_file", { file: "note.txt" });
    expect(wrong.isError).toBe(true);
    expect(renderText(wrong.content)).toMatch(/path/);
  });

  it("remember: the memory server finds what was stored", async () => {
    const entities = [{ name: "Ada", entityType: "person", observations: ["likes looms"] }];
    await client.callTool("memory", "create_entities", { entities });
    const found = await client.callTool("memory", "search_nodes", { query: "looms" });
    expect(found.structured).toMatchObject({ entities: [{ name: "Ada" }] });
  });

  it("work by model-side name: thinking, linting and planning", async () => {
    const thought = { thought: "first", thoughtNumber: 1, totalThoughts: 2, nextThoughtNeeded: true };
    const thinking = await client.dispatch("mcp_thinking_sequentialthinking", thought);
    expect(thinking.structured).toMatchObject({ thoughtHistoryLength: 1 });

    writeFileSync(join(folder, "eslint.config.js"), 'export default [{ rules: { "no-debugger": "error" } }];\n');
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
    writeFileSync(join(folder, "code.js"), "debugger;\n");
    const lint = client.dispatch("mcp_lint_lint-files", { filePaths: [join(folder, "code.js")] });
    expect(await textOf(lint)).toContain("Unexpected 'debugger' statement");

    const plan = { originalRequest: "paint", tasks: [{ title: "buy paint", description: "blue" }] };
    expect(await textOf(client.dispatch("mcp_tasks_request_planning", plan))).toContain('"requestId": "req-1"');
    expect(await textOf(client.dispatch("mcp_tasks_get_next_task", { requestId: "req-1" }))).toContain("buy paint");
  });
});

/** Answers the long form of the server: some fields, the rest left out. */
const answer = (question: ElicitationRequest) =>
  question.mode === "url"
    ? ({ action: "accept" } as const)
    : ({ action: "accept", content: { name: "Ada", check: true, email: "ada@example.org", integer: 7 } } as const);

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Starts the everything server over HTTP. @returns its configuration and how to end it */
async function overHttp(): Promise<{ config: ServerConfig; stop: () => void }> {
  const port = await freePort();
  const env = { ...process.env, PORT: String(port) };
  const child = spawn(process.execPath, [join(modules, EVERYTHING), "streamableHttp"], {
    env,
    stdio: ["ignore", "ignore", "pipe"],
  });
  await new Promise<void>((resolve, reject) => {
    let said = "";
    child.stderr.on("data", (data) => {
      said = (said + data).slice(-2_000);
      if (said.includes("listening on port")) resolve();
    });
    child.once("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
  });
  const config = { url: `http://127.0.0.1:${port}/mcp`, connectTimeoutMs: 15_000, required: true };
  return { config, stop: () => child.kill("SIGKILL") };
}

describe.each(["stdio", "HTTP"])("the everything server over %s", (transport) => {
  const questions: ElicitationRequest[] = [];
  const logs: LogEvent[] = [];
  let client: Client;
  let stop = () => {};
  beforeAll(async () => {
    let config = published(EVERYTHING, ["stdio"]);
    if (transport === "HTTP") ({ config, stop } = await overHttp());
    client = createClient({
      servers: { all: config },
      elicitation: (question) => {
        questions.push(question);
        return answer(question);
      },
      events: { onLog: (event) => logs.push(event) },
      logLevel: "debug",
    });
  });
  afterAll(async () => {
    await client.close();
    stop();
  });

  it("is known with its revision and instructions", async () => {
    await client.listTools();
    expect(client.servers()).toMatchObject([
      { health: "up", era: "legacy", revision: "2025-11-25", implementation: { name: "mcp-servers/everything" } },
    ]);
    expect(client.servers()[0]?.instructions).toContain("Everything Server");
  });

  it("is called with plain, structured and mixed results", async () => {
    expect(await textOf(client.callTool("all", "echo", { message: "grüß dich" }))).toBe("Echo: grüß dich");
    expect(await textOf(client.callTool("all", "get-sum", { a: 2, b: 40 }))).toContain("42");
    const weather = await client.callTool("all", "get-structured-content", { location: "Chicago" });
    expect(weather.structured).toMatchObject({ temperature: expect.any(Number), humidity: expect.any(Number) });
    const image = await client.callTool("all", "get-tiny-image");
    expect(image.content.map(({ type }) => type)).toEqual(["text", "image", "text"]);
    const links = await client.callTool("all", "get-resource-links", { count: 2 });
    expect(renderText(links.content)).toContain('[link "Text Resource 2" demo://resource/dynamic/text/2');
    const embedded = await client.callTool("all", "get-resource-reference", { resourceType: "Text", resourceId: 1 });
    expect(renderText(embedded.content)).toContain("Resource 1: This is a plaintext resource");
    const wrong = await client.callTool("all", "echo", { msg: "no" });
    expect(wrong.isError).toBe(true);
    expect(renderText(wrong.content)).toContain("message");
  });

  it("reports progress of a long operation to the call it belongs to", async () => {
    const progress: ProgressEvent[] = [];
    const onProgress = (event: ProgressEvent) => progress.push(event);
    const long = client.callTool("all", "trigger-long-running-operation", { duration: 0.4, steps: 4 }, { onProgress });
    expect(await textOf(long)).toContain("completed");
    expect(progress.map(({ percent }) => percent)).toEqual([25, 50, 75, 100]);
  });

  it("logs once it is told to", async () => {
    await client.callTool("all", "toggle-simulated-logging");
    await expect.poll(() => logs.length, { timeout: 15_000 }).toBeGreaterThan(0);
    await client.callTool("all", "toggle-simulated-logging");
  });

  it("asks the person a long form and opens an address", async () => {
    const form = await textOf(client.callTool("all", "trigger-elicitation-request"));
    expect(form).toContain("Name: Ada");
    const asked = questions.find(({ mode }) => mode === "form");
    const fields = asked?.mode === "form" ? asked.fields : [];
    expect(fields.map(({ name }) => name)).toContain("titledMultipleSelectEnum");
    expect(new Set(fields.map(({ kind }) => kind))).toEqual(
      new Set(["text", "boolean", "number", "choice", "choices"]),
    );
    const url = "https://example.org/consent";
    expect(await textOf(client.callTool("all", "trigger-url-elicitation", { url }))).toContain("completed");
    expect(questions).toContainEqual(expect.objectContaining({ mode: "url", url }));
  });

  it("hides what the client cannot do, and says so when it is called all the same", async () => {
    expect(await namesOf(client, "all")).not.toContain("trigger-sampling-request");
    const sampling = await client.callTool("all", "trigger-sampling-request", { prompt: "hello" });
    expect(sampling.isError).toBe(true);
    expect(renderText(sampling.content)).toContain("trigger-sampling-request");
  });

  it("reads listed and templated resources and prompts", async () => {
    const listed = await client.listResources("all");
    expect(listed.map(({ uri }) => uri)).toContain("demo://resource/static/document/features.md");
    const [document] = await client.readResources("all", ["demo://resource/static/document/features.md"]);
    expect(document?.asString()).toContain("#");
    const [blob] = await client.readResources("all", ["demo://resource/dynamic/blob/3"]);
    expect(Buffer.from(blob?.asBytes() ?? []).toString()).toContain("Resource 3: This is a base64 blob");
    expect((await client.listPrompts("all")).map(({ name }) => name)).toContain("args-prompt");
    const prompt = await client.getPrompt("all", "args-prompt", { city: "Paris", state: "TX" });
    expect(prompt).toEqual([{ role: "user", content: { type: "text", text: "What's weather in Paris, TX?" } }]);
  });

  it("takes parallel calls without mixing them up", async () => {
    const numbers = Array.from({ length: 50 }, (_, i) => i);
    const echoes = numbers.map((n) => textOf(client.callTool("all", "echo", { message: String(n) })));
    expect(await Promise.all(echoes)).toEqual(numbers.map((n) => `Echo: ${n}`));
  });
});

it("a published server sees none of the caller's secrets in its environment", async () => {
  process.env.TENON_TEST_SECRET = "do not pass on";
  await using client = createClient({ servers: { all: published(EVERYTHING, ["stdio"], { GIVEN: "yes" }) } });
  const environment = await textOf(client.callTool("all", "get-env"));
  delete process.env.TENON_TEST_SECRET;
  expect(environment).toContain('"GIVEN": "yes"');
  expect(environment).not.toContain("TENON_TEST_SECRET");
});
