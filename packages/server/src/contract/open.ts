import type { ContextStore } from "@tenon/store";
import type { TokenVerifier } from "../auth/types.ts";
import type { Service } from "../dispatch/dispatch.ts";
import { timelyContexts } from "../handler/within.ts";
import { type Contract, openContract } from "./contract.ts";
import { contractExtension } from "./methods.ts";
import type { ContractSettings } from "./options.ts";

/**
 * The contract of a server, with its method added to what the server answers.
 * @throws ConfigError `code: "schema"`, `"contract_keys"`, `"contract_drift"`
 */
export function openOwnContract(
  settings: ContractSettings,
  service: Service,
  { verifier, contexts }: { verifier: TokenVerifier | undefined; contexts: ContextStore },
): Contract {
  const contract = openContract(settings, service, { verifier, contexts: timelyContexts(contexts) });
  service.extensions.add(contractExtension(contract), false);
  return contract;
}
