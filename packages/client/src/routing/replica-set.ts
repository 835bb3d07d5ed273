import { randomUUID } from "node:crypto";
import { ConfigError, messageOf, ProtocolError, TenonError } from "@tenon/core";
import { gauge } from "@tenon/core/internal";
import type { AuthSession } from "../auth/types.ts";
import { inTurns } from "../call/resources.ts";
import type { Connection, ConnectionHooks } from "../connection/connection.ts";
import { cancelled } from "../connection/deadline.ts";
import type { Attempt, Endpoint, Sent } from "../connection/endpoint.ts";
import { closedError, Server } from "../connection/server.ts";
import type { Registry } from "../registry/types.ts";
import type { BreakerState, ReplicaConfig, RoutingOptions } from "../types/routing.ts";
import type { HttpServerConfig, ReplicasServerConfig, ServerInfo, ServiceServerConfig } from "../types/servers.ts";
import { createBreaker } from "./breaker.ts";
import { Members } from "./members.ts";
import { headersNeedOrigins, triedOf } from "./problems.ts";
import { type Need, Replica, SUITS } from "./replica.ts";
import { keyOf } from "./route.ts";
import { mayDoBetter, nextReplica, type Search, whyNone } from "./search.ts";
import { type Service, watchService } from "./service.ts";

/** How often one request may be repeated at other replicas, unless a layer decides about it. */
const REPEATS = 3;
/** Milliseconds that connecting may take, and a first request waits for the registry, where the server does not say. */
const CONNECT_MS = 5_000;
/** One request looks for a replica that can be reached for so many times as long as one connection may take. */
const LOOKS = 3;
const GAUGE = { closed: 0, "half-open": 1, open: 2 } as const satisfies Record<BreakerState, number>;

/** What a server with replicas is made from. */
export interface ReplicaSetOptions {
  readonly name: string;
  readonly config: HttpServerConfig | ReplicasServerConfig | ServiceServerConfig;
  readonly hooks: ConnectionHooks;
  readonly onState: (info: ServerInfo) => void;
  readonly routing: RoutingOptions;
  readonly registry: Registry | undefined;
}

/**
 * One configured server that runs at several places. Each request goes to the place that its key prefers, and to the next one where the
 * first surely did not run it, or where running it again does no harm.
 */
export class ReplicaSet implements Endpoint {
  readonly name: string;
  readonly config: HttpServerConfig | ReplicasServerConfig | ServiceServerConfig;
  readonly repeats = REPEATS;
  onIdentity: (() => void) | undefined;
  readonly #options: ReplicaSetOptions;
  readonly #members: Members;
  readonly #closing = new AbortController();
  readonly #session: AuthSession | undefined;
  #principal = "";
  /** The key of requests that nobody is known for. */
  readonly #own = `client ${randomUUID()}`;
  /** Where lists came from last: they stay with it while it is there, so that they do not change back and forth. */
  #source: Replica | undefined;
  #service: Service | undefined;
  #problems: ServerInfo["problems"] = [];
  #error: ServerInfo["error"];
  readonly #stopGauge: () => void;

  constructor(options: ReplicaSetOptions) {
    const { name, config, routing } = options;
    this.name = name;
    this.config = config;
    this.#options = options;
    this.#session = this.#openSession();
    this.#members = new Members((replica) => this.#make(replica));
    this.#stopGauge = gauge("tenon_breaker_state", () =>
      this.#members.all.flatMap(({ id, state }) =>
        state === undefined ? [] : { value: GAUGE[state], attributes: { server: name, replica: id } },
      ),
    );
    if ("url" in config) this.#members.update([{ url: config.url }]);
    if ("replicas" in config) this.#members.update(config.replicas.map(asReplica));
    const prewarm = routing.prewarm ?? "service" in config;
    if (!prewarm) return;
    if ("service" in config) this.#watch();
    else this.#prewarm(this.#members.all);
  }

  get info(): ServerInfo {
    const all = this.#members.all.map(({ info }) => info);
    const shown = [...all, ...[...this.#members.leaving].map(({ info }) => info)];
    const source = this.#source?.server.info;
    const first = source?.health === "up" ? source : this.#members.all.map(({ server }) => server.info).find(isUp);
    const is = (health: ServerInfo["health"]) => all.some((replica) => replica.health === health);
    const told = this.#service?.info;
    const waits = told?.health === "waiting" && !told.error;
    const down = all.length > 0 ? all.every((replica) => replica.health === "down") : told !== undefined;
    const health = is("up") ? "up" : is("connecting") || waits ? "connecting" : down ? "down" : "idle";
    const breakers = all.flatMap(({ breaker }) => breaker ?? []);
    const breaker = (["closed", "half-open", "open"] as const).find((state) => breakers.includes(state));
    const error = this.#error ?? (health === "down" ? (all.at(0)?.error ?? told?.error) : undefined);
    const { server: _name, health: _health, error: _error, problems: _problems, ...about } = first ?? { server: "" };
    return Object.freeze({
      server: this.name,
      health,
      ...about,
      ...(error && { error }),
      ...(breaker && { breaker }),
      replicas: Object.freeze(shown),
      ...(told && { registry: told }),
      problems: this.#problems,
    });
  }

  get revision(): string | undefined {
    return this.#source?.server.revision;
  }

  /** Each replica has sessions of its own. */
  get sessionId(): undefined {
    return undefined;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  get identifies(): boolean {
    return this.#session !== undefined;
  }

  async identify(): Promise<string> {
    if (!this.#session) return "";
    const principal = (await this.#session.credential())?.principal ?? "";
    if (principal !== this.#principal) {
      this.#principal = principal;
      this.onIdentity?.();
    }
    return principal;
  }

  connection(): Promise<Connection> {
    return this.use("tools/list", (connection) => Promise.resolve(connection));
  }

  /** For lists: all from one replica while it is there, so that an upgrade of one after the other changes them once. */
  async use<T>(what: string, use: (connection: Connection) => Promise<T>, safe = true): Promise<T> {
    const unwatched = new AbortController().signal;
    const sent = {
      method: what,
      what,
      safe,
      elsewhere: safe,
      inTurn: false,
      via: {},
      route: {},
      headers: {},
      meta: {},
    };
    const source = this.#source;
    return this.#search({ ...sent, mayRepeat: () => true, signal: unwatched }, (connection) => use(connection), {
      order: () => (source && !source.leaving ? [source, ...this.#members.all] : this.#members.all),
      onAnswer: (replica) => {
        this.#source = replica;
      },
      lenient: true,
    });
  }

  send<T>(sent: Sent, attempt: Attempt<T>): Promise<T> {
    if ("service" in this.config && this.config.origins === undefined && Object.keys(sent.headers).length > 0) {
      return Promise.reject(headersNeedOrigins(this.name));
    }
    return this.#search(sent, attempt, {
      order: () => (this.#session ? this.identify().then((who) => this.#orderOf(sent, who)) : this.#orderOf(sent, "")),
      onAnswer: (replica) => {
        const { via } = sent;
        if (via.member === replica.server) return;
        via.release?.();
        via.member = replica.server;
        if (via.keeps) via.release = replica.keep();
      },
    });
  }

  report(problems: ServerInfo["problems"], error?: NonNullable<ServerInfo["error"]>): void {
    this.#problems = problems;
    this.#error = error && { code: error.code, message: error.message };
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#service?.stop();
    this.#stopGauge();
    await this.#members.close();
  }

  async #search<T>(
    sent: Sent,
    attempt: Attempt<T>,
    how: {
      readonly order: () => readonly Replica[] | Promise<readonly Replica[]>;
      readonly onAnswer: (replica: Replica) => void;
      readonly lenient?: boolean;
    },
  ): Promise<T> {
    const { method, what, tool, elsewhere, mayRepeat, route, signal } = sent;
    if (this.#service?.isKnown !== true && "service" in this.config) await this.#watch().ready();
    const need: Need = { method, tool, careful: !elsewhere, lenient: how.lenient === true };
    const members = this.#members.all;
    const found = how.order();
    const order = found instanceof Promise ? await found : found;
    const search: Search = {
      order,
      members,
      renewals: 0,
      begun: sent.via.member,
      need,
      visited: new Set(),
      failed: route.failed,
      failures: [],
    };
    let lookingMs = LOOKS * (this.config.connectTimeoutMs ?? CONNECT_MS);
    let lostMs = 0;
    let ran = false;
    for (;;) {
      if (this.closed) throw closedError(this.name);
      if (signal.aborted) throw cancelled(this.name, what, signal.reason, ran);
      const replica = nextReplica(search);
      if (!replica) {
        if (search.members === this.#members.all || search.renewals++ >= REPEATS)
          throw whyNone(this.name, sent, search, ran);
        search.members = this.#members.all;
        search.order = await how.order();
        continue;
      }
      search.visited.add(replica);
      const started = Date.now();
      let began = 0;
      let lacking = false;
      const use = (connection: Connection) => {
        replica.met(connection);
        began ||= Date.now();
        return attempt(connection, { lostMs, others: nextReplica(search, SUITS.resting) !== undefined });
      };
      try {
        // inside: one that leaves is closed when nothing of it is needed any more
        const answer = await replica.run(async () => {
          const found = await replica.server.use(what, use, elsewhere, mayRepeat);
          lacking = sent.saysLacking?.(found) === true && this.#lacksAnd(replica, tool, search);
          if (!lacking) how.onAnswer(replica);
          return found;
        });
        if (!lacking) return answer;
      } catch (thrown) {
        if (!(thrown instanceof TenonError)) throw thrown;
        const lacks = sent.lacks?.(thrown) === true;
        if (lacks && tool !== undefined) replica.lacks(tool);
        const better = mayDoBetter(thrown);
        if (better) {
          replica.failed(thrown);
          route.failed ??= new Set();
          route.failed.add(replica);
        }
        const notRun = thrown.maybeExecuted === false;
        if (!lacks && !(better && (notRun || elsewhere))) throw thrown;
        search.failures.push({ tried: triedOf(replica, thrown), error: thrown, lacks });
        // the time of a call is its caller's: it is not begun anew elsewhere
        if (thrown.code === "timeout" && !notRun) throw thrown;
        if (!notRun) {
          ran = true;
          lostMs += began === 0 ? 0 : Date.now() - began;
          if (nextReplica(search) === undefined || !mayRepeat()) throw whyNone(this.name, sent, search, ran);
        }
        // many that are silent would take many times as long as one
        if (began === 0) lookingMs -= Date.now() - started;
        if (lookingMs <= 0) throw whyNone(this.name, sent, search, ran);
      }
    }
  }

  /** Notes that a replica's answer only says that it lacks the tool. @returns whether another one can be asked */
  #lacksAnd(replica: Replica, tool: string | undefined, search: Search): boolean {
    if (tool !== undefined) replica.lacks(tool);
    if (nextReplica(search) === undefined) return false;
    const error = new ProtocolError("it has no such tool", { code: "unknown_tool", maybeExecuted: false });
    search.failures.push({ tried: triedOf(replica, error), error, lacks: true });
    return true;
  }

  /** The order of a request's key; first the replica that has begun what it belongs to. */
  #orderOf(sent: Sent, principal: string): readonly Replica[] {
    const order = this.#members.order(this.#keyOf(sent, principal));
    const begun = sent.via.member && this.#members.of(sent.via.member);
    return begun && !begun.server.closed ? [begun, ...order] : order;
  }

  #keyOf(sent: Sent, principal: string): string {
    const { key } = this.#options.routing;
    try {
      return keyOf(this.name, sent, principal, this.#own, key);
    } catch (cause) {
      throw new ConfigError(
        `routing.key failed for ${sent.what} on server "${this.name}": ${messageOf(cause)}. Nothing was sent`,
        {
          code: "handler_failed",
          server: this.name,
          maybeExecuted: false,
          cause,
        },
      );
    }
  }

  #make({ id, url, capabilities }: ReplicaConfig & { readonly id: string }): Replica {
    const { hooks, routing } = this.#options;
    const {
      replicas: _1,
      service: _2,
      origins: _3,
      resource: _4,
      breaker = routing.breaker,
      ...common
    } = this.config as Partial<ReplicasServerConfig & ServiceServerConfig> & { breaker?: HttpServerConfig["breaker"] }; // whichever of the three it is, these are its keys
    const changed = () => this.#changed();
    const server = new Server(this.name, { ...common, url }, hooks, changed, this.#session);
    const watched = breaker === false ? undefined : createBreaker(breaker ?? {}, changed);
    return new Replica({ id, url, declared: capabilities, server, breaker: watched });
  }

  #openSession(): AuthSession | undefined {
    const { config, name } = this;
    const { auth } = config;
    if (!auth) return undefined;
    const first =
      "replicas" in config ? config.replicas.map(asReplica)[0]?.url : "url" in config ? config.url : undefined;
    const resource = "url" in config ? undefined : config.resource;
    const url = resource ?? first ?? "https://service.invalid/"; // a bearer token goes where its request goes
    return auth.open({ server: name, config: { ...config, url }, signal: this.#closing.signal });
  }

  /** Begins to watch the service, once. */
  #watch(): Service {
    if (this.#service) return this.#service;
    const { registry } = this.#options;
    const { config } = this;
    if (!registry || !("service" in config)) throw new Error(`server "${this.name}" has no service`); // its caller looked
    const { service, origins, auth, connectTimeoutMs: waitMs = CONNECT_MS } = config;
    this.#service = watchService({
      server: this.name,
      service,
      registry,
      origins,
      auth: auth !== undefined,
      waitMs,
      onReplicas: (replicas) => {
        if (this.closed) return;
        const joined = this.#members.update(replicas);
        if (this.#options.routing.prewarm ?? true) this.#prewarm(joined);
      },
      onChange: () => this.#changed(),
    });
    return this.#service;
  }

  /** Connects beside everything else; what fails, `servers()` tells. Nobody is asked to sign in before there is a need. */
  #prewarm(replicas: readonly Replica[]): void {
    if (this.config.auth?.kind === "oauth") return;
    const connect = async (replica: Replica) => {
      await replica.server.connection().then(
        (connection) => replica.met(connection),
        () => {},
      );
    };
    void inTurns(replicas, connect);
  }

  #changed(): void {
    if (!this.closed) this.#options.onState(this.info);
  }
}

function asReplica(given: string | ReplicaConfig): ReplicaConfig {
  return typeof given === "string" ? { url: given } : given;
}

function isUp({ health }: ServerInfo): boolean {
  return health === "up";
}
