import { setMaxListeners } from "node:events";
import { ConnectionError, keepNewest, messageOf, TenonError } from "@tenon/core";
import { backoff } from "../connection/time.ts";
import type { ReplicaConfig } from "../types/routing.ts";
import type { Registry, RegistryListener } from "./types.ts";

/** Services whose last good answer is kept. */
const MAX_SERVICES = 1_000;
/** Milliseconds between two questions at least, however often a registry says that something changed. */
const LEAST_MS = 100;
/** Bounds of the wait after a failure. */
const WAITS = { firstMs: 500, mostMs: 30_000 };

/** One look at a service. */
export interface Look {
  readonly replicas: readonly ReplicaConfig[];
  /** Handed to the next look, for registries that tell changes only. */
  readonly mark?: string | undefined;
  /** Milliseconds until the next look. */
  readonly pauseMs: number;
}

/** How a look is made. */
export interface LookOptions {
  readonly mark: string | undefined;
  readonly signal: AbortSignal;
  /** Nobody waits for it: it must not hold the process open. */
  readonly quiet: boolean;
}

/** How a registry is asked. */
export interface Source {
  /** @throws TenonError; anything else counts as a registry that cannot be asked */
  look(service: string, options: LookOptions): Promise<Look>;
  /** Listens, beside the looks, for signs that something changed; called while anybody watches. */
  listen?(changed: () => void): () => void;
  close?(): Promise<void>;
}

/** One service that is watched. */
interface Watch {
  readonly listeners: Set<RegistryListener>;
  readonly abort: AbortController;
  /** Has the next look begin at once; one that is under way may have come too early. */
  wake(): void;
  /** Waits for the next look, without holding the process open. */
  nap(ms: number): Promise<void>;
  /** Why the last look failed. */
  problem: TenonError | undefined;
}

function asError(error: unknown): TenonError {
  if (error instanceof TenonError) return error;
  return new ConnectionError(`a registry failed: ${messageOf(error)}`, {
    code: "registry_unreachable",
    retryable: true,
    cause: error,
  });
}

function createWatch(): Watch {
  const abort = new AbortController();
  let woken = false;
  let end = () => {};
  abort.signal.addEventListener("abort", () => end());
  return {
    listeners: new Set(),
    abort,
    problem: undefined,
    wake: () => {
      woken = true;
      end();
    },
    nap: async (ms) => {
      if (!woken && !abort.signal.aborted) {
        await new Promise<void>((resolve) => {
          const timer = setTimeout(resolve, ms);
          timer.unref();
          end = () => {
            clearTimeout(timer);
            resolve();
          };
        });
      }
      woken = false;
    },
  };
}

/**
 * A registry around a source: asks while somebody watches, keeps the last good answer, tells changes only, and asks a source that
 * fails again, later each time.
 */
export function watching(source: Source): Registry {
  const known = new Map<string, readonly ReplicaConfig[]>();
  const watches = new Map<string, Watch>();
  const closing = new AbortController();
  setMaxListeners(0, closing.signal); // one listener a watched service
  let stopListening: (() => void) | undefined;

  const tell = (watch: Watch, how: (listener: RegistryListener) => void) => {
    // one may leave while it is told
    for (const listener of [...watch.listeners]) how(listener);
  };

  const follow = async (service: string, watch: Watch): Promise<void> => {
    const waits = backoff(WAITS);
    const { signal } = watch.abort;
    let mark: string | undefined;
    while (!signal.aborted) {
      const began = performance.now();
      let pause: number;
      try {
        const found = await source.look(service, { mark, signal, quiet: known.has(service) });
        if (signal.aborted) return;
        mark = found.mark;
        pause = Math.max(found.pauseMs, LEAST_MS - (performance.now() - began));
        waits.reset();
        const changed = JSON.stringify(known.get(service)) !== JSON.stringify(found.replicas);
        keepNewest(known, service, found.replicas, MAX_SERVICES);
        // after a failure it is told again, so that everybody knows that it is over
        if (changed || watch.problem) tell(watch, ({ onReplicas }) => onReplicas(found.replicas));
        watch.problem = undefined;
      } catch (thrown) {
        if (signal.aborted) return;
        mark = undefined; // the registry may have begun anew
        const error = asError(thrown);
        watch.problem = error;
        tell(watch, ({ onProblem }) => onProblem?.(error));
        pause = waits.next();
      }
      await watch.nap(pause);
    }
  };

  const begin = (service: string): Watch => {
    const watch = createWatch();
    watches.set(service, watch);
    stopListening ??= source.listen?.(() => {
      for (const one of watches.values()) one.wake();
    });
    return watch;
  };

  const end = (service: string, watch: Watch): void => {
    watch.abort.abort();
    if (watches.get(service) === watch) watches.delete(service);
    if (watches.size > 0) return;
    stopListening?.();
    stopListening = undefined;
  };

  return Object.freeze<Registry>({
    async replicas(service) {
      const last = known.get(service);
      if (last && watches.has(service)) return last;
      try {
        const { replicas } = await source.look(service, { mark: undefined, signal: closing.signal, quiet: false });
        keepNewest(known, service, replicas, MAX_SERVICES);
        return replicas;
      } catch (error) {
        if (last) return last;
        throw asError(error);
      }
    },
    watch(service, listener) {
      if (closing.signal.aborted) {
        listener.onProblem?.(new ConnectionError("the registry was closed", { code: "closed", maybeExecuted: false }));
        return () => {};
      }
      const present = watches.get(service);
      const watch = present ?? begin(service);
      // the same listener may watch twice
      const own = { ...listener };
      watch.listeners.add(own);
      const last = known.get(service);
      if (last) own.onReplicas(last);
      if (watch.problem) own.onProblem?.(watch.problem);
      if (!present) void follow(service, watch);
      return () => {
        watch.listeners.delete(own);
        if (watch.listeners.size === 0) end(service, watch);
      };
    },
    async close() {
      closing.abort();
      for (const [service, watch] of [...watches]) end(service, watch);
      await source.close?.();
    },
  });
}
