import type { ContextStore } from "@tenon/store";
import { openMemory } from "@tenon/store";
import { describe, expect, it } from "vitest";
import { createRemembering } from "./remembering.ts";

/** A store whose writes end when the test says so. */
function slow() {
  const open: (() => void)[] = [];
  const { contexts } = openMemory();
  const store: ContextStore = {
    ...contexts,
    put: async (...given) => {
      await new Promise<void>((resolve) => open.push(resolve));
      return contexts.put(...given);
    },
  };
  const lines: unknown[] = [];
  const log = (_level: string, message: string, about: object = {}) => void lines.push({ message, ...about });
  const kept = createRemembering(store, { server: "desk", ttlMs: 60_000, log });
  const drain = async () => {
    while (open.length > 0) {
      for (const end of open.splice(0)) end();
      await new Promise((resolve) => setImmediate(resolve));
    }
  };
  return { kept, open, lines, drain };
}

describe("keeping contexts in a store that hangs", () => {
  it("piles up neither writes nor contexts, and says once that some are not kept", async () => {
    const { kept, open, lines, drain } = slow();
    for (let n = 0; n < 20_000; n++) {
      kept.note(`s-${n}`, undefined, { session_id: `s-${n}` });
      if (n % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(open.length).toBeLessThanOrEqual(100);
    expect(lines).toEqual([
      { message: "the last context of a session could not be kept", reason: "the store is 1000 contexts behind" },
    ]);
    await drain();
    expect(await kept.find("s-0", undefined)).toMatchObject({ context: { session_id: "s-0" } });
    // waited for its turn
    expect(await kept.find("s-500", undefined)).toMatchObject({ context: { session_id: "s-500" } });
    expect(await kept.find("s-19999", undefined)).toBeUndefined();
    // the store is well again
    kept.note("s-19999", undefined, { session_id: "s-19999" });
    await drain();
    expect(await kept.find("s-19999", undefined)).toMatchObject({ context: { session_id: "s-19999" } });
    await kept.close();
  });
});
