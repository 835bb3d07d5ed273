import { isRecord, keepNewest, type TenonError } from "@tenon/core";
import type { Connection } from "../connection/connection.ts";
import { shownAddress } from "../connection/place.ts";
import type { Server } from "../connection/server.ts";
import { backoff } from "../connection/time.ts";
import { driftOf } from "../contract/accepted.ts";
import { isOutOfContract } from "../contract/keeping.ts";
import type { ContractDrift } from "../types/contracts.ts";
import type { BreakerState, ReplicaInfo } from "../types/routing.ts";
import type { Breaker } from "./breaker.ts";
import { isCapability, missingOn, missingWord } from "./needs.ts";

/** Bounds of the time a replica that could not be reached is tried last, in milliseconds. */
const REST = { firstMs: 500, mostMs: 15_000 };
/** Longest rest that a busy replica may ask for. */
const MAX_BUSY_MS = 60_000;
/** Milliseconds it is remembered that a replica lacks a tool; an upgrade brings it. */
const LACKING_MS = 30_000;
const MAX_LACKING = 1_000;
/** Milliseconds after which a replica that offers nothing of a kind is asked again what it offers. */
const LOOK_AGAIN_MS = 60_000;

/** How well a replica suits a request: the lower, the sooner it is tried. */
export const SUITS = { well: 0, cautiously: 1, resting: 2, lacking: 3 } as const;
export type Suits = (typeof SUITS)[keyof typeof SUITS];

/** What a request asks of a replica. */
export interface Need {
  readonly method: string;
  readonly tool?: string | undefined;
  /** Whether a failure would reach the caller: then a replica that is only tried out is not the first choice. */
  readonly careful: boolean;
  /** For lists: who offers nothing of the kind has an empty one, and is asked when nobody offers any. */
  readonly lenient?: boolean;
}

/** What a replica is made of. */
export interface ReplicaParts {
  readonly id: string;
  readonly url: string;
  readonly declared: readonly string[] | undefined;
  readonly server: Server;
  readonly breaker: Breaker | undefined;
}

/** One of the places where a server runs, and what is known of it beyond its connection. */
export class Replica {
  readonly id: string;
  readonly url: string;
  readonly declared: readonly string[] | undefined;
  readonly server: Server;
  readonly breaker: Breaker | undefined;
  leaving = false;
  #requests = 0;
  /** Calls that began here and are not over, between their requests too. */
  #calls = 0;
  #restsUntil = 0;
  readonly #rests = backoff(REST);
  #looking = false;
  #connection: Connection | undefined;
  #metAt = 0;
  readonly #lacking = new Map<string, number>();
  #onIdle: (() => void) | undefined;

  constructor({ id, url, declared, server, breaker }: ReplicaParts) {
    this.id = id;
    this.url = url;
    this.declared = declared;
    this.server = server;
    this.breaker = breaker;
  }

  get state(): BreakerState | undefined {
    return this.breaker?.state;
  }

  /** Why a request cannot go there at all; undefined when it can. */
  refusal({ method, lenient }: Need): string | undefined {
    const missing = lenient ? undefined : missingWord(method, this.declared);
    if (missing !== undefined) return `it lacks ${missing}`;
    return this.breaker && !this.breaker.admits ? "its breaker is open" : undefined;
  }

  /** How well it suits a request that can go there. */
  suits({ method, tool, careful, lenient }: Need): Suits {
    const until = this.#lacking.size > 0 && tool !== undefined ? this.#lacking.get(tool) : undefined;
    if (until !== undefined && until > performance.now()) return SUITS.lacking;
    if (this.#connection && missingOn(method, this.#connection) !== undefined) {
      if (this.#metAt + LOOK_AGAIN_MS <= performance.now()) this.#look();
      return SUITS.lacking;
    }
    if (lenient && missingWord(method, this.declared) !== undefined) return SUITS.lacking;
    if (this.#restsUntil !== 0) {
      if (this.#restsUntil <= performance.now()) this.#look();
      return SUITS.resting;
    }
    return careful && this.breaker && this.breaker.state !== "closed" ? SUITS.cautiously : SUITS.well;
  }

  /** Runs one request on it, watched by its breaker. @throws what `work` throws */
  async run<T>(work: () => Promise<T>): Promise<T> {
    this.#requests++;
    try {
      return await (this.breaker ? this.breaker.run(work) : work());
    } finally {
      this.#requests--;
      this.#tellIdle();
    }
  }

  /** Notes on which connection a request is sent: what that announced is known from now on. */
  met(connection: Connection): void {
    if (connection !== this.#connection) this.#metAt = performance.now();
    this.#connection = connection;
    if (this.#restsUntil !== 0) this.#rested();
  }

  /** Notes an error of a request. */
  failed(error: TenonError): void {
    const { code, data } = error;
    if (code === "unreachable" || isOutOfContract(error)) this.#rest(this.#rests.next());
    const wait = code === "http_error" && isRecord(data) ? data.retryAfterMs : undefined;
    if (typeof wait === "number") this.#rest(Math.min(wait, MAX_BUSY_MS));
  }

  /** Notes that it lacks a tool which others have. */
  lacks(tool: string): void {
    keepNewest(this.#lacking, tool, performance.now() + LACKING_MS, MAX_LACKING);
  }

  /** Keeps it open for a call that has begun here, until the result is called. */
  keep(): () => void {
    let kept = true;
    this.#calls++;
    return () => {
      if (!kept) return;
      kept = false;
      this.#calls--;
      this.#tellIdle();
    };
  }

  /** Resolves when nothing is in flight, and no call that began here goes on. */
  idle(): Promise<void> {
    if (this.#requests + this.#calls === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle = resolve;
    });
  }

  get info(): ReplicaInfo {
    const { health, era, revision, implementation, error, capabilities: announced, contract } = this.server.info;
    const capabilities = this.declared ?? announced;
    const drift = contract?.drift ?? (announced && this.declared && this.#driftFrom(announced));
    const retryAt = this.breaker?.retryAt;
    return Object.freeze({
      id: this.id,
      url: shownAddress(this.url),
      health,
      ...(this.breaker && { breaker: this.breaker.state }),
      ...(retryAt !== undefined && { retryAt: new Date(retryAt).toISOString() }),
      ...(this.leaving && { leaving: true as const }),
      ...(capabilities && { capabilities }),
      ...(drift && { drift }),
      ...(contract && { contract }),
      ...(era && { era }),
      ...(revision !== undefined && { revision }),
      ...(implementation && { implementation }),
      ...(error && { error }),
      requests: this.#requests,
    });
  }

  /** What its configuration or registry says against what it announces, in words that both use. */
  #driftFrom(announced: readonly string[]): ContractDrift | undefined {
    const words = (this.declared ?? []).filter(isCapability);
    return words.length === 0 ? undefined : driftOf(new Set(words), announced);
  }

  #tellIdle(): void {
    if (this.#requests + this.#calls === 0) this.#onIdle?.();
  }

  #rest(ms: number): void {
    this.#restsUntil = performance.now() + ms;
  }

  #rested(): void {
    this.#restsUntil = 0;
    this.#rests.reset();
  }

  /** Looks, beside the calls, what it is like now: nobody waits for a place that does not answer. */
  #look(): void {
    if (this.#looking || this.leaving) return;
    this.#looking = true;
    // a connection from memory alone would prove nothing
    const found = this.server.renew().then(
      (connection) => this.met(connection),
      () => this.#rest(this.#rests.next()),
    );
    void found.finally(() => {
      this.#looking = false;
    });
  }
}
