import type { Verdict } from "../auth/gate.ts";

/** What was found out about the token of a request, for whoever answers it in the end. */
const verdicts = new WeakMap<object, Verdict>();

/** Notes what the fast path found out, so that a request it hands on is not looked at twice. */
export function noteVerdict(incoming: object, verdict: Verdict): void {
  verdicts.set(incoming, verdict);
}

export const verdictOn = (incoming: object): Verdict | undefined => verdicts.get(incoming);
