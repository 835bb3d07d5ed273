import { isRecord, META } from "@tenon/core";
import { CONTRACT_EXTENSION } from "@tenon/core/contract";
import type { Extension } from "../extension/extensions.ts";
import type { Contract } from "./contract.ts";

/** Whether a client said that it can do without, or does not know, the end of a context's time. */
export function withoutExpiry(contract: Contract, meta: Readonly<Record<string, unknown>>): boolean {
  const without = meta[META.contractWithout];
  return contract.version(meta) === "0.4.1" || (Array.isArray(without) && without.includes("expires_at"));
}

/** The method of the contract's extension. What is announced of it is the declaration, which changes: see `announcing.ts`. */
export function contractExtension(contract: Contract): Extension {
  return {
    id: CONTRACT_EXTENSION,
    methods: {
      "contexts/get": {
        async handler(params, exchange) {
          const { session_id } = isRecord(params) ? params : {};
          const last = await contract.last(session_id, exchange.caller, {
            withoutExpiry: withoutExpiry(contract, exchange.meta),
          });
          return exchange.era === "modern" ? { resultType: "complete", ...last } : last;
        },
      },
    },
  };
}
