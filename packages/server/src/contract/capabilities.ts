import { ConfigError } from "@tenon/core";
import { CAPABILITY_OF, CONTRACT_VERSIONS } from "@tenon/core/contract";
import { METHODS, type Service } from "../dispatch/dispatch.ts";
import { offers } from "../dispatch/protocol.ts";

/** Parts of a server that a contract speaks of. */
type Offered = Pick<Service, "registry" | "extensions">;

/** The capabilities that a server's definitions implement, in a fixed order: they are signed. */
export function implementedCapabilities({ registry }: Offered): readonly string[] {
  const found = METHODS.filter((method) =>
    method.startsWith("tools/") ? registry.tools.size > 0 : offers(registry, method),
  ).map((method) => CAPABILITY_OF[method]);
  return [...new Set([...found, CAPABILITY_OF["contexts/get"]])];
}

/** What a server tells a registry that it can do: what its contract declares, else what is there. */
export function registeredCapabilities(service: Offered & Pick<Service, "contract">): readonly string[] {
  const [newest] = CONTRACT_VERSIONS;
  if (service.contract) return service.contract.declaration(newest).capabilities;
  return implementedCapabilities(service).filter((capability) => capability !== CAPABILITY_OF["contexts/get"]);
}

/** Names of capabilities that methods of the server's extensions stand for: `audit/list` is `audit.list`. */
function extensionCapabilities({ extensions }: Offered): readonly string[] {
  return [...extensions.access.keys()].map((method) => method.replaceAll("/", "."));
}

/**
 * Refuses to announce what nothing answers.
 * @throws ConfigError `code: "contract_drift"` naming the capabilities
 */
export function refuseDrift(declared: readonly string[], offered: Offered): void {
  const real = new Set([...implementedCapabilities(offered), ...extensionCapabilities(offered)]);
  const missing = declared.filter((capability) => !real.has(capability));
  if (missing.length === 0) return;
  throw new ConfigError(
    `The contract declares ${missing.join(", ")}, and nothing of this server implements it; define it before serving, or take it out of \`contract.capabilities\`. Implemented: ${[...real].join(", ")}`,
    { code: "contract_drift", data: { capabilities: missing } },
  );
}
