import { keepNewest } from "@tenon/core";
import { shownAddress } from "../connection/place.ts";
import type { Server } from "../connection/server.ts";
import { bounded } from "../connection/time.ts";
import type { ReplicaConfig } from "../types/routing.ts";
import { rank } from "./hash.ts";
import type { Replica } from "./replica.ts";

/** Keys whose order is kept. */
const MAX_ORDERS = 4_096;
/** Longest time a replica that left may end what it has begun, in milliseconds: the total time of a call. */
const LEAVING_MS = 600_000;

/** What names a replica: its id, or its address without what may be a credential. */
export function idOf({ id, url }: ReplicaConfig): string {
  return id ?? shownAddress(url);
}

/** The replicas of one server as of now, in the order they were given. */
export class Members {
  readonly #make: (config: ReplicaConfig & { readonly id: string }) => Replica;
  #all: readonly Replica[] = [];
  readonly #leaving = new Set<Replica>();
  readonly #orders = new Map<string, readonly Replica[]>();

  constructor(make: (config: ReplicaConfig & { readonly id: string }) => Replica) {
    this.#make = make;
  }

  get all(): readonly Replica[] {
    return this.#all;
  }

  get leaving(): ReadonlySet<Replica> {
    return this.#leaving;
  }

  /** Every replica in the order of one key. */
  order(key: string): readonly Replica[] {
    const known = this.#orders.get(key);
    if (known) return known;
    const order = rank(key, this.#all);
    keepNewest(this.#orders, key, order, MAX_ORDERS);
    return order;
  }

  /** The replica behind a server, also one that is leaving. */
  of(server: Server | undefined): Replica | undefined {
    if (!server) return undefined;
    return this.#all.find((one) => one.server === server) ?? [...this.#leaving].find((one) => one.server === server);
  }

  /**
   * Takes over a new list: who is in both stays, with everything that is known of it.
   * @returns those that joined
   */
  update(configs: readonly ReplicaConfig[]): readonly Replica[] {
    const before = new Map(this.#all.map((replica) => [replica.id, replica]));
    const joined: Replica[] = [];
    const all: Replica[] = [];
    for (const config of configs) {
      const id = idOf(config);
      const known = before.get(id);
      before.delete(id);
      if (known && known.url === config.url && String(known.declared) === String(config.capabilities)) {
        all.push(known);
        continue;
      }
      if (known) this.#leave(known);
      const replica = this.#make({ ...config, id });
      joined.push(replica);
      all.push(replica);
    }
    for (const gone of before.values()) this.#leave(gone);
    this.#all = all;
    this.#orders.clear();
    return joined;
  }

  async close(): Promise<void> {
    const all = [...this.#all, ...this.#leaving];
    await Promise.all(all.map(({ server }) => server.close()));
    this.#leaving.clear();
  }

  /** It gets nothing new, ends what it has begun, and is closed. */
  #leave(replica: Replica): void {
    replica.leaving = true;
    this.#leaving.add(replica);
    const ended = bounded(replica.idle(), LEAVING_MS);
    void ended.then(() => replica.server.close()).finally(() => this.#leaving.delete(replica));
  }
}
