import { ConnectionError, codeOf, messageOf, type TenonError } from "@tenon/core";
import { bounded } from "../connection/time.ts";
import type { Registry } from "../registry/types.ts";
import type { RegistryInfo, ReplicaConfig } from "../types/routing.ts";
import { idOf } from "./members.ts";
import { type AddressRules, addressFault } from "./origins.ts";

/** Replicas of one service that are used; a registry that names more says something else. */
const MAX_REPLICAS = 500;
/** Refused replicas that `client.servers()` shows. */
const MAX_REFUSED = 20;

/** A service of a registry, watched for one server. */
export interface Service {
  readonly info: RegistryInfo;
  /** Whether the registry has said where the service is. */
  readonly isKnown: boolean;
  /** Resolves once the registry has said where the service is. @throws ConnectionError `registry_unreachable` */
  ready(): Promise<void>;
  stop(): void;
}

/** What a service is watched for. */
export interface ServiceOptions extends AddressRules {
  readonly server: string;
  readonly service: string;
  readonly registry: Registry;
  /** Milliseconds that a first request waits for the registry. */
  readonly waitMs: number;
  /** The replicas that may be used. */
  readonly onReplicas: (replicas: readonly ReplicaConfig[]) => void;
  /** The state of the registry changed. */
  readonly onChange: () => void;
}

/** Watches a service, and takes from its registry what the configuration allows. */
export function watchService(options: ServiceOptions): Service {
  const { server, service, registry, waitMs, onReplicas, onChange } = options;
  let info: RegistryInfo = { health: "waiting" };
  let known = false;
  let last: TenonError | undefined;
  const waiting = new Set<(error: TenonError | undefined) => void>();
  const settle = (error?: TenonError) => {
    for (const one of waiting) one(error);
    waiting.clear();
  };
  const unreachable = (cause: TenonError | undefined): ConnectionError => {
    const reason = cause ? cause.message : `it did not answer within ${waitMs} ms`;
    return new ConnectionError(
      `the registry did not say where service "${service}" of server "${server}" is: ${reason}. Nothing was sent`,
      { code: "registry_unreachable", server, retryable: true, maybeExecuted: false, ...(cause && { cause }) },
    );
  };
  const take = (replicas: readonly ReplicaConfig[]) => {
    const refused: { replica: string; reason: string }[] = [];
    const ids = new Set<string>();
    const good = replicas.filter((replica) => {
      const fault = addressFault(replica.url, options);
      const name = fault === undefined ? idOf(replica) : (replica.id ?? "without an id");
      const full = ids.size >= MAX_REPLICAS ? `more than ${MAX_REPLICAS} are not used` : undefined;
      const reason = fault ?? (ids.has(name) ? "another one has its id" : full);
      if (reason === undefined) ids.add(name);
      else refused.push({ replica: name.slice(0, 200), reason });
      return reason === undefined;
    });
    known = true;
    info = { health: "up", ...(refused.length > 0 && { refused: refused.slice(0, MAX_REFUSED) }) };
    onReplicas(good);
    onChange();
    settle();
  };
  const stop = registry.watch(service, {
    onReplicas: take,
    onProblem: (error) => {
      const told = { code: codeOf(error) ?? "unexpected", message: messageOf(error) };
      info = { ...info, health: known ? "down" : "waiting", error: told };
      last = error;
      onChange();
      settle(error);
    },
  });
  return {
    get info() {
      return info;
    },
    get isKnown() {
      return known;
    },
    ready: async () => {
      if (known) return;
      const answer = new Promise<{ error?: TenonError | undefined }>((resolve) => {
        waiting.add((error) => resolve({ error }));
      });
      const first = await bounded(answer, waitMs);
      if (!known) throw unreachable(first?.error ?? last);
    },
    stop: () => {
      stop();
      settle(); // nobody waits any more
    },
  };
}
