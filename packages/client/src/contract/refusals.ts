import { ContractError, isRecord } from "@tenon/core";

/** Why a server refuses a request for its contract's sake, as it says it in an error's `data.reason`. */
const REASONS = new Set(["missing_context_field", "invalid_context_value", "undeclared_capability"]);

/** The error for a request that its server refused because of the contract; undefined where that is not the reason. */
export function unmetContract(server: string, what: string, words: string, data: unknown): ContractError | undefined {
  if (!isRecord(data) || typeof data.reason !== "string" || !REASONS.has(data.reason)) return undefined;
  const { reason, field, capability } = data;
  return new ContractError(`server "${server}" refused ${what}: ${words}`, {
    code: reason,
    server,
    maybeExecuted: false,
    data: {
      reason,
      ...(typeof field === "string" && { field: field.slice(0, 200) }),
      ...(typeof capability === "string" && { capability: capability.slice(0, 200) }),
    },
  });
}
