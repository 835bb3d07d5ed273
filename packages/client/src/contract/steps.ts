import { META } from "@tenon/core";
import type { ContractWay } from "../types/contracts.ts";

/** Milliseconds that an answer may take at each step. */
export const STEP_MS = 800;

/** One step of the ladder. */
export interface Step {
  readonly way: ContractWay;
  /** Version of the contract that is asked for; none on the last step. */
  readonly version?: "0.4.2" | "0.4.1";
  /** What the request for it carries in `_meta`. */
  readonly meta: Readonly<Record<string, unknown>>;
}

const PLAIN: Step = { way: "plain", meta: {} };
const CONTRACTS: readonly Step[] = [
  { way: "0.4.2", version: "0.4.2", meta: { [META.contract]: "0.4.2" } },
  {
    way: "0.4.2 without expires_at",
    version: "0.4.2",
    meta: { [META.contract]: "0.4.2", [META.contractWithout]: ["expires_at"] },
  },
  { way: "0.4.1", version: "0.4.1", meta: { [META.contract]: "0.4.1" } },
];

/** The steps from the best to the least; the last one only where a server may be used without a contract. */
export function stepsFor(plain: boolean): readonly Step[] {
  return plain ? [...CONTRACTS, PLAIN] : CONTRACTS;
}
