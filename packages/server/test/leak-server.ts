import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createServer, type TenonServer, ToolError } from "../src/index.ts";

/**
 * A server whose one tool says its caller's name in everything it sends, some of it too late.
 * @param aborted gets the names of those who left
 */
export function secrets(aborted: Set<string>): TenonServer {
  const server = createServer({ name: "secrets", version: "1.0.0", logSink: () => undefined });
  const input = z.object({ who: z.string(), ms: z.number(), waits: z.boolean() });
  server.tool("secret", { input }, async ({ who, ms, waits }, ctx) => {
    let running = true;
    const left = new Promise<void>((resolve) => {
      const leave = (): void => {
        if (running) aborted.add(who);
        resolve();
      };
      if (ctx.signal.aborted) leave();
      else ctx.signal.addEventListener("abort", leave, { once: true });
    });
    for (let i = 1; i <= 3; i++) {
      await sleep(ms);
      // not awaited, and some of it after the caller left or the answer went out: what careless handlers do
      void ctx.progress(i, 3, `secret of <${who}>`);
      void ctx.log.warning(`secret of <${who}>`);
    }
    // its caller leaves as soon as it hears something, however busy this machine is
    if (waits) await Promise.race([left, sleep(20_000)]);
    setTimeout(() => {
      void ctx.progress(4, 4, `late secret of <${who}>`);
      void ctx.log.error(`late secret of <${who}>`);
    }, ms);
    running = false;
    if (who.endsWith("7")) throw new ToolError(`no luck for <${who}>`);
    return `done for <${who}>`;
  });
  return server;
}

await secrets(new Set()).run(import.meta);
