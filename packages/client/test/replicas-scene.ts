import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program } from "../../../test/programs.ts";
import type { Client } from "../src/index.ts";
import { type HttpBehavior, type HttpStub, type StubHandler, start, stubHttp } from "./stub/index.ts";

/** The tools of every replica: one only reads, the other has an effect. */
export const LOOK = { name: "look", inputSchema: { type: "object" }, annotations: { readOnlyHint: true } };
export const SPEND = { name: "spend", inputSchema: { type: "object" } };

const text = (value: string) => ({ content: [{ type: "text", text: value }] });

/** A replica that can be made to fail, and says what it did. */
export interface ReplicaStub extends HttpStub {
  /** Ids of effects, in order. */
  readonly effects: readonly string[];
  /** Calls of tools so far. */
  readonly calls: number;
  /** What it does with calls from now on; undefined: it answers. */
  behave(how: StubHandler | undefined): void;
}

/** A replica by its name, closed after the test. */
export async function replica(name: string, behavior: HttpBehavior = {}): Promise<ReplicaStub> {
  const effects: string[] = [];
  let how: StubHandler | undefined;
  const onCall: StubHandler = (request, reply) => {
    const { name: tool, arguments: args } = request.params as { name: string; arguments: { id: string } };
    if (how) return how(request, reply);
    if (tool === "spend") effects.push(args.id);
    return text(`${name} ${tool === "spend" ? "spent" : "saw"} ${args.id}`);
  };
  const stub = await start(stubHttp({ tools: [LOOK, SPEND], onCall, ...behavior }));
  const behave = (next: StubHandler | undefined) => {
    how = next;
  };
  return Object.defineProperties(stub, {
    effects: { value: effects },
    calls: { get: () => stub.count("tools/call") },
    behave: { value: behave },
  }) as ReplicaStub;
}

/** The text of a call's answer. */
export async function said(client: Client, tool: string, id: string, threadId?: string): Promise<string> {
  const result = await client.callTool("kb", tool, { id }, threadId === undefined ? {} : { runtime: { threadId } });
  const [block] = result.content;
  return block?.type === "text" ? block.text : "";
}

const children: ChildProcess[] = [];

/** A replica as a process, which can be killed. */
export async function replicaProcess(spends: "answers" | "hangs" = "answers") {
  const file = join(mkdtempSync(join(tmpdir(), "tenon-replica-")), "effects");
  const child = spawn(process.execPath, [await program("./replica-server.ts", import.meta.url), file, spends], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  const [line] = await once(child.stdout, "data");
  return {
    url: String(line).trim(),
    effects: (): string[] => {
      try {
        return readFileSync(file, "utf8").split("\n").filter(Boolean);
      } catch {
        return []; // none yet
      }
    },
    kill: async () => {
      const gone = once(child, "exit");
      child.kill("SIGKILL");
      await gone;
    },
  };
}

/** Ends what `replicaProcess` started. */
export function killReplicas(): void {
  for (const child of children.splice(0)) child.kill("SIGKILL");
}
