import { ConfigError } from "@tenon/core";

/** Characters of a step's key, as stores keep it. */
const MAX_LENGTH = 500;
/** What no database gives back as it was: a step would not be found again, and its effect repeated. */
const UNKEPT = /\0|\p{Surrogate}/u;

/** Refuses before its effect a step that a store could not record after it, or not find again. @throws ConfigError `code: "step_key"` */
export function checkStepName(step: unknown): void {
  if (typeof step === "string" && step !== "" && step.length <= MAX_LENGTH && !UNKEPT.test(step)) return;
  throw new ConfigError(
    `ctx.step: the key of a step that is recorded is a text of 1 to ${MAX_LENGTH} characters without NUL and half characters; make ` +
      "a digest of anything else",
    { code: "step_key" },
  );
}
