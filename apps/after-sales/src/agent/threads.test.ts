import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { emptyCheckpoint } from "@langchain/langgraph";
import { afterAll, describe, expect, it } from "vitest";
import { smallDisk } from "../../../../test/full-disk.ts";
import { openThreads } from "./threads.ts";

const folder = mkdtempSync(join(tmpdir(), "tenon-threads-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe("a conversation whose disk is full", () => {
  it("says in one sentence that it could not be saved, and is saved when there is room", async () => {
    const disk = await smallDisk(() => openThreads({ directory: folder }));
    const threads = disk.opened;
    const config = { configurable: { thread_id: "t", checkpoint_ns: "" } };
    const metadata = { source: "input", step: 0, parents: {} } as const;
    const large = { ...emptyCheckpoint(), channel_values: { text: "x".repeat(100_000) } };
    const { checkpointer } = threads;
    try {
      expect(await checkpointer.getTuple(config)).toBeUndefined(); // makes its tables
      disk.fill();
      const refused: unknown = await checkpointer.put(config, large, metadata, {}).catch((error: unknown) => error);
      expect(refused).toMatchObject({ code: "disk_full", retryable: true, cause: { code: "SQLITE_FULL" } });
      expect(refused).not.toMatchObject({ maybeExecuted: false }); // a call of the turn may have had its effect
      const saved = { configurable: { ...config.configurable, checkpoint_id: large.id } };
      const writes = checkpointer.putWrites(saved, [["text", "x".repeat(100_000)]], "task");
      await expect(writes).rejects.toThrow("the disk is full, so the conversation could not be saved");
      disk.heal();
      await checkpointer.put(config, large, metadata, {});
      expect((await checkpointer.getTuple(config))?.checkpoint.id).toBe(large.id);
    } finally {
      await threads.close();
    }
  });
});
