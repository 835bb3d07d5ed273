import { describe, expect, it } from "vitest";
import { createServer } from "./index.ts";

const make = (options: object) => () => createServer({ name: "s", version: "1", ...options });

describe("an option of createServer", () => {
  it.each([
    [{ logLevel: "loud" }, 'logLevel must be one of debug, info, notice, warning, error, got "loud"'],
    [{ questionTtlMs: -1 }, "questionTtlMs must be a positive number of milliseconds, got -1"],
    [{ pageWaitMs: "20s" }, 'pageWaitMs must be a number of milliseconds, 0 or more, got "20s"'],
    [{ maxResultBytes: Number.NaN }, "maxResultBytes must be a positive number of bytes, got NaN"],
    [{ exposeErrors: "no" }, 'exposeErrors must be true or false, got "no"'],
    [{ lifespan: {} }, "lifespan must be a function, got a value of type object"],
    [{ unknownArguments: "refuse" }, "unknownArguments must be one of strip, reject"],
    [{ argumentLimits: { maxDepth: 0 } }, "argumentLimits }).maxDepth must be a positive number of levels"],
    [{ http: { maxBodyBytes: 0 } }, "http }).maxBodyBytes must be a positive number of bytes"],
    [{ http: [] }, "createServer({ http }) must be an object, got a list"],
    [{ workers: { maxThreads: 0 } }, "workers }).maxThreads must be a positive number of threads"],
    [{ name: 5 }, "name must be a text"],
    [{ version: undefined }, "version must be a text, got nothing"],
  ])("that is wrong is refused: %o", (options, message) => {
    expect(make(options)).toThrow(expect.objectContaining({ code: "invalid_option" }));
    expect(make(options)).toThrow(message);
  });
  it("may be 0 where that means none, and undefined for left out", async () => {
    await make({ pageWaitMs: 0, spillBytes: 0, workers: { maxQueue: 0 }, logLevel: undefined })().close();
  });
});
