import { isRecord } from "@tenon/core";
import { kindOf, refuseOption } from "@tenon/core/internal";
import { checkUrl } from "../options.ts";
import { checkReplicas } from "../routing/options.ts";
import type { ReplicaConfig } from "../types/routing.ts";
import { replicasOf } from "./entries.ts";
import type { Registry } from "./types.ts";

/**
 * A registry of what is written down: services by their name, each with its replicas.
 * @throws ConfigError `invalid_option`
 * @example staticRegistry({ kb: ["https://kb-1.example/mcp", { url: "https://kb-2.example/mcp", id: "second" }] })
 */
export function staticRegistry(services: Readonly<Record<string, readonly (string | ReplicaConfig)[]>>): Registry {
  if (!isRecord(services)) refuseOption(`staticRegistry(services) must be an object of lists, got ${kindOf(services)}`);
  const check = checkReplicas(checkUrl);
  for (const [name, replicas] of Object.entries(services)) check(replicas, `staticRegistry(services).${name}`);
  const known = new Map(
    Object.entries(services).map(([name, replicas]) => [name, Object.freeze(replicasOf(replicas))]),
  );
  const of = (service: string) => known.get(service) ?? [];
  return Object.freeze<Registry>({
    replicas: async (service) => of(service),
    watch: (service, { onReplicas }) => {
      onReplicas(of(service));
      return () => {};
    },
    close: async () => {},
  });
}
