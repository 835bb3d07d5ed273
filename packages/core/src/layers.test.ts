import { describe, expect, it } from "vitest";
import { runLayers } from "./layers.ts";

type Step = (request: string, next: (given?: string) => Promise<string>) => string | Promise<string>;
const run = (
  layers: Step[],
  core = async (request: string) => `<${request}>`,
  wait?: (o: Promise<string>) => Promise<string>,
) =>
  runLayers<string, string, string | undefined, Step>(
    {
      layers,
      core,
      enter: (given, outer) => given ?? outer,
      check(outcome, layer, index) {
        if (typeof outcome === "string") return outcome;
        throw new Error(`layer ${index} (${layer.name}) gave nothing`);
      },
      ...(wait && { wait }),
    },
    "r",
  );

describe("layers around a core", () => {
  it("run from the first one inward, and back", async () => {
    expect(await run([])).toBe("<r>");
    const around =
      (name: string): Step =>
      async (request, next) =>
        `${name}(${await next(`${request}${name}`)})`;
    expect(await run([around("a"), around("b")])).toBe("a(b(<rab>))");
  });
  it("may answer themselves, and go on several times with what they got or something else", async () => {
    expect(await run([() => "no", () => "never"])).toBe("no");
    const twice: Step = async (_, next) => `${await next()} ${await next("s")}`;
    expect(await run([twice])).toBe("<r> <s>");
  });
  it("are checked, each by itself", async () => {
    const forgets = (async (_: string, next: () => Promise<string>) => void (await next())) as unknown as Step;
    await expect(run([(_, next) => next(), forgets])).rejects.toThrow("layer 1 (forgets) gave nothing");
  });
  it("hear of failures, and of one that nobody awaits nobody hears", async () => {
    const fails = async (): Promise<string> => {
      throw new Error("down");
    };
    await expect(run([(_, next) => next()], fails)).rejects.toThrow("down");
    expect(await run([(_, next) => next().catch(() => "saved")], fails)).toBe("saved");
    const leaves: Step = (_, next) => {
      void next();
      return "left";
    };
    expect(await run([leaves], fails)).toBe("left");
  });
  it("wait for what they are given to wait for", async () => {
    const late = new Promise<never>((_, reject) => setTimeout(() => reject(new Error("given up")), 5));
    const hangs = () => new Promise<string>(() => {});
    await expect(run([(_, next) => next()], hangs, (o) => Promise.race([o, late]))).rejects.toThrow("given up");
  });
});
