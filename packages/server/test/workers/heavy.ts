import { existsSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { threadId } from "node:worker_threads";
import { image, ToolError, type WorkerFunction } from "../../src/index.ts";

/** Does what it is told, in its thread. */
const heavy: WorkerFunction<{ do: string; ms?: number; file?: string }> = async (
  { do: what, ms = 0, file = "" },
  ctx,
) => {
  switch (what) {
    case "block": {
      // truly blocks its thread, and reports while it does
      const end = Date.now() + ms;
      let next = 0;
      for (let done = 0; Date.now() < end; done++) {
        if (done % 1_000_000 === 0) void ctx.progress(++next, 1_000_000, "counting");
      }
      return { threadId, caller: ctx.caller?.subject };
    }
    case "block until": {
      // the same until there is a file, and says so with another
      writeFileSync(`${file}.began`, "");
      const end = Date.now() + 60_000;
      while (!existsSync(file) && Date.now() < end);
      return { threadId, caller: ctx.caller?.subject };
    }
    case "report":
      for (let i = 1; i <= 3; i++) await ctx.progress(i, 3, `step ${i}`);
      await ctx.log.warning("half way", { extra: { at: 2 } });
      return "reported";
    case "refuse":
      throw new ToolError("Not in here", { code: "nope", data: { why: "test" } });
    case "leak":
      throw new Error("password=hunter2");
    case "picture":
      return image(new Uint8Array([1, 2]), "image/png");
    case "map":
      return new Map([["at", new Date(0)]]);
    case "function":
      return { f: () => 1, n: 1 };
    case "nan":
      return { list: [Number.NaN] };
    case "until cancelled":
      while (!ctx.signal.aborted) await sleep(10);
      await ctx.log.info("stopped by itself");
      return "cancelled";
    case "exit":
      return process.exit(3);
    default:
      return what;
  }
};
export default heavy;
