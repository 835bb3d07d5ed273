import { AuthError } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { sayRefusals } from "./refusals.ts";

describe("a refusal that is said in words", () => {
  it.each([
    [true, true],
    [false, false],
    [undefined, false],
  ])("keeps whether the call may have run: %s", async (before, after) => {
    const say = sayRefusals(async () => "in words");
    const more = before === undefined ? {} : { maybeExecuted: before };
    const refuse = () => Promise.reject(new AuthError("401", { code: "invalid_token", ...more }));
    const request = { server: "order" } as unknown as Parameters<typeof say>[0]; // it looks at nothing else
    await expect(say(request, refuse)).rejects.toMatchObject({ message: "in words", maybeExecuted: after });
  });
});
