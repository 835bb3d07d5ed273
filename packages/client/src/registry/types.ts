import type { TenonError } from "@tenon/core";
import type { ReplicaConfig } from "../types/routing.ts";

/** Who wants to know where a service is. */
export interface RegistryListener {
  /** All replicas, as of now; called with every change. */
  onReplicas(replicas: readonly ReplicaConfig[]): void;
  /** The registry cannot be asked, or says what cannot be read; what it said last goes on to count. */
  onProblem?(error: TenonError): void;
}

/** Knows where services are. Made by a function of `@tenon/client/registry`, or by a program of its own. */
export interface Registry {
  /**
   * Where a service is now, be it none; the last good answer while the registry is down.
   * @throws ConnectionError `registry_unreachable`, ProtocolError `bad_registry` when there never was one
   */
  replicas(service: string): Promise<readonly ReplicaConfig[]>;
  /**
   * Tells of a service: what is known at once, then every change and every problem. Call the result to end it. A registry that
   * nobody watches asks nothing and holds no process open.
   */
  watch(service: string, listener: RegistryListener): () => void;
  /** Ends all watching. */
  close(): Promise<void>;
}
