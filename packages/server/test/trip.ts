import { appendFileSync, existsSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { createServer, type ServerOptions, type TenonServer } from "../src/index.ts";

/** Effects of all processes, in the order they happened. */
export function effectsIn(folder: string): string[] {
  const file = join(folder, "effects");
  return existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
}

/** Kills this process once, at the named place in the handler: the file that arms it goes first, so that a new try survives. */
async function crashPoint(folder: string, name: string): Promise<void> {
  const armed = join(folder, `crash-${name}`);
  if (!existsSync(armed)) return;
  rmSync(armed);
  process.kill(process.pid, "SIGKILL");
  await sleep(60_000);
}

/** One handler for the matrix: three questions, two steps, one branch that a declined question takes. */
export function trip(folder: string, options: Partial<ServerOptions> = {}): TenonServer {
  const effect = (what: string): { what: string } => {
    appendFileSync(join(folder, "effects"), `${what}\n`);
    return { what };
  };
  const server = createServer({ name: "trips", version: "1.0.0", logSink: () => undefined, ...options });
  server.tool("trip", { input: z.object({ to: z.string() }) }, async ({ to }, ctx) => {
    const seat = await ctx.step("reserve", () => effect(`reserve ${to}`));
    const sure = await ctx.elicit(`Go to ${to}?`, ["yes", "no"]);
    if (sure.action !== "accept" || sure.data === "no") return "not gone";
    const meal = await ctx.elicit("Which meal?", { veg: "Vegetables", fish: "Fish" });
    const days = await ctx.elicit("How long?", z.object({ days: z.number().int().min(1) }));
    if (days.action !== "accept") return "not gone";
    await crashPoint(folder, "before-pay");
    const paid = await ctx.step("pay", () => effect(`pay ${days.data.days}`));
    await crashPoint(folder, "after-pay");
    return { seat: seat.what, meal: meal.action === "accept" ? meal.data : meal.action, paid: paid.what };
  });
  return server;
}
