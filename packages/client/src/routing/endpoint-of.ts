import type { Endpoint } from "../connection/endpoint.ts";
import { Server } from "../connection/server.ts";
import type { ClientOptions } from "../types/client.ts";
import type { ServerConfig } from "../types/servers.ts";
import { ReplicaSet, type ReplicaSetOptions } from "./replica-set.ts";

/** What a configured server is made with. */
type Parts = Pick<ReplicaSetOptions, "hooks" | "onState"> & Pick<ClientOptions, "routing" | "registry">;

/** A configured server: one place, or several with what chooses between them. A single address without a breaker pays nothing for it. */
export function endpointOf(
  name: string,
  config: ServerConfig,
  { hooks, onState, routing = {}, registry }: Parts,
): Endpoint {
  const several = "replicas" in config || "service" in config;
  if (several || ("url" in config && (config.breaker ?? routing.breaker ?? false) !== false)) {
    return new ReplicaSet({ name, config, hooks, onState, routing, registry });
  }
  return new Server(name, config, hooks, onState);
}
