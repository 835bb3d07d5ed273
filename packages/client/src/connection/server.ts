import { ConnectionError, type TenonError } from "@tenon/core";
import { IdentityChanged, Refusal } from "../auth/refusal.ts";
import type { AuthSession } from "../auth/types.ts";
import { announcedCapabilities } from "../contract/accepted.ts";
import { keepRefusal, type Refused, renewal } from "../contract/keeping.ts";
import type { EndpointConfig, ServerInfo, StdioServerConfig } from "../types/servers.ts";
import type { Connection, ConnectionHooks } from "./connection.ts";
import type { Attempt, Endpoint, Sent } from "./endpoint.ts";
import { classify, HANDSHAKE } from "./failure.ts";
import { openConnection } from "./open.ts";
import { callsAtOnce, createQueue } from "./queue.ts";
import { contradicts, endpointOf, forget, recall, remember, type Verdict, wantsHandshake } from "./verdicts.ts";

/** How often a connection is looked for while its requests become somebody else's again and again. */
const MAX_CHANGES = 3;

/** The error of a server whose client was closed. */
export function closedError(server: string): ConnectionError {
  return new ConnectionError(`the client was closed; server "${server}" can no longer be used. Create a new client`, {
    code: "closed",
    server,
    maybeExecuted: false,
  });
}

/**
 * One configured server: one shared connection, opened on use and replaced when it dies. With a `pool`, calls that overlap run on
 * further connections, each of them a server of its own that nobody else sees.
 */
export class Server implements Endpoint {
  readonly name: string;
  readonly config: EndpointConfig;
  readonly repeats = 1;
  readonly #hooks: ConnectionHooks;
  readonly #onState: (info: ServerInfo) => void;
  #current: Connection | undefined;
  #opening: Promise<Connection> | undefined;
  readonly #closing = new AbortController();
  readonly #leftovers = new Set<Promise<void>>();
  readonly #session: AuthSession | undefined;
  /** Who requests are made for; empty where nobody is known. */
  #principal = "";
  /** Called when requests begin to be made for somebody else: nothing of the one before must be shown. */
  onIdentity: (() => void) | undefined;
  #ownVerdict: Verdict | undefined;
  readonly #turn: ReturnType<typeof createQueue>;
  readonly #pooled: boolean;
  /** Members of the pool that have nothing to do, the first one last, and all but the first. */
  readonly #idle: Server[] = [this];
  readonly #members: Server[] = [];
  #info: ServerInfo;
  /** A contract that was not agreed on a moment ago. */
  #refused: Refused | undefined;

  /** @param session the authorisation that replicas share; left out, it has one of its own where it is configured */
  constructor(
    name: string,
    config: EndpointConfig,
    hooks: ConnectionHooks,
    onState: (info: ServerInfo) => void,
    session?: AuthSession,
  ) {
    this.name = name;
    this.config = config;
    this.#hooks = hooks;
    this.#onState = onState;
    const signal = this.#closing.signal;
    this.#session = session ?? ("url" in config ? config.auth?.open({ server: name, config, signal }) : undefined);
    this.#turn = createQueue(callsAtOnce(config));
    this.#pooled = "command" in config && config.pool !== undefined;
    this.#info = { server: name, health: "idle", problems: [] };
  }

  get info(): ServerInfo {
    return this.#info;
  }

  get revision(): string | undefined {
    return this.#info.revision;
  }

  /** The id of its session on the older revision over HTTP, while there is one. */
  get sessionId(): string | undefined {
    return this.#current?.sessionId;
  }

  get closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /**
   * Who requests are made for now, as a name for caches: the same only while it is the same person.
   * @throws AuthError when that cannot be told
   */
  async identify(): Promise<string> {
    if (!this.#session) return "";
    const principal = (await this.#session.credential())?.principal ?? "";
    if (principal !== this.#principal) {
      this.#principal = principal;
      this.#leave();
      this.#ownVerdict = undefined;
      this.onIdentity?.();
    }
    return principal;
  }

  /** Whether it takes more than a glance to tell who requests are made for. */
  get identifies(): boolean {
    return this.#session !== undefined;
  }

  /** The shared connection; opens one if there is none, once for all who wait. */
  connection(): Promise<Connection> {
    return this.#session ? this.#identified() : this.#shared();
  }

  /** Asks the server anew what it is and offers; requests in flight may still end. @throws TenonError */
  renew(): Promise<Connection> {
    this.#forget();
    this.#leave();
    return this.connection();
  }

  /** The connection of whom requests are made for now. @throws IdentityChanged, AuthError */
  async #identified(): Promise<Connection> {
    for (let changes = 0; changes < MAX_CHANGES; changes++) {
      const principal = await this.identify();
      const connection = await this.#shared();
      if (connection.principal === principal && principal === this.#principal) return connection;
      if (connection.principal !== this.#principal) this.#leave();
    }
    throw new IdentityChanged(this.name);
  }

  #shared(): Promise<Connection> {
    if (this.#closing.signal.aborted) return Promise.reject(closedError(this.name));
    if (this.#current && !this.#current.gone) {
      this.#renew(this.#current);
      if (this.#current) return Promise.resolve(this.#current);
    }
    this.#opening ??= this.#open().finally(() => {
      this.#opening = undefined;
    });
    return this.#opening;
  }

  /**
   * Runs `use` on the shared connection. It is repeated once, on a new connection, only when the request surely did not
   * run: the connection was refused or gone before the request was written, the session was unknown to the server, or what
   * was known about the server beforehand proved wrong.
   * @param safe the request only reads, or may be repeated: it is also sent again when the connection was lost on the way
   * @param mayRepeat whether it may be sent again at all; not asked where the server refused it for what was known about it
   * @throws TenonError whatever `use` threw, classified
   */
  async use<T>(
    what: string,
    use: (connection: Connection) => Promise<T>,
    safe = false,
    mayRepeat: () => boolean = () => true,
  ): Promise<T> {
    const refusals = { 401: 0, 403: 0 };
    let changes = 0;
    for (let attempt = 1; ; ) {
      const reused = this.#current !== undefined && !this.#current.gone;
      const connection = await this.connection();
      try {
        const value = await use(connection);
        connection.proven = true;
        return value;
      } catch (thrown) {
        const target = { server: this.name, place: connection.place, what, session: connection.hasSession };
        const failure = classify(thrown, target);
        if (this.#closing.signal.aborted && failure.error.code === "lost") {
          const message = `the client was closed during ${what} on server "${this.name}"; it may have taken effect`;
          throw new ConnectionError(message, { code: "closed", server: this.name, maybeExecuted: true, cause: thrown });
        }
        if (this.#session && failure.error instanceof Refusal) {
          const { refused } = failure.error;
          await this.#session.refused(refused, ++refusals[refused.status]);
          continue;
        }
        if (failure.error instanceof IdentityChanged && ++changes < MAX_CHANGES) {
          await this.identify();
          continue;
        }
        const other = !connection.proven ? contradicts : connection.era === "modern" ? wantsHandshake : () => false;
        const misjudged = failure.ran === "no" && other(failure.error);
        if (failure.dead || misjudged) this.#drop(connection, failure.error);
        if (misjudged) this.#forget();
        const again = misjudged && !failure.dead;
        const repeated = failure.dead && (safe || (reused && failure.ran === "no"));
        if (attempt > 1 || !(again || (repeated && mayRepeat()))) throw failure.error;
        attempt++;
      }
    }
  }

  send<T>(sent: Sent, attempt: Attempt<T>): Promise<T> {
    const { what, safe, mayRepeat, via } = sent;
    const use = (member: Server) => {
      via.member = member;
      return member.use(what, attempt, safe, mayRepeat);
    };
    return sent.inTurn ? this.turn(use) : use(via.member ?? this);
  }

  /**
   * Runs `work` when it is its turn: at once, unless the server's `concurrency` is limited.
   * @param work is given what to use: this, or a member of its pool that has nothing else to do
   */
  turn<T>(work: (member: Server) => Promise<T>): Promise<T> {
    if (!this.#pooled) return this.#turn(() => work(this));
    return this.#turn(async () => {
      const member = this.#idle.pop() ?? this.#addMember();
      try {
        return await work(member);
      } finally {
        this.#idle.push(member);
      }
    });
  }

  /** Tells what is wrong with the server's lists, beside its health. */
  report(problems: ServerInfo["problems"], error?: { readonly code: string; readonly message: string }): void {
    const { error: _old, ...rest } = this.#info;
    const keep = this.#info.health === "down" ? _old : undefined;
    const now = error ? { code: error.code, message: error.message } : keep;
    this.#info = Object.freeze({ ...rest, problems, ...(now && { error: now }) });
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const members = this.#members.map((member) => member.close());
    await Promise.all([this.#current?.close(), this.#opening?.catch(() => {}), ...members]);
    await Promise.all(this.#leftovers);
    this.#setHealth({ health: "idle" });
  }

  #addMember(): Server {
    const { pool: _pool, ...config } = this.config as StdioServerConfig; // only those have pools
    const member = new Server(this.name, config, this.#hooks, () => {});
    this.#members.push(member);
    return member;
  }

  /** Has a contract renewed whose time is over, beside the calls that go on. */
  #renew(connection: Connection): void {
    const begun = renewal(connection, this.#hooks);
    if (begun === "replace") this.#leave();
    else {
      void begun?.then((refused) => {
        this.#refused = refused;
        if (refused) this.#drop(connection, refused.error);
        else if (connection === this.#current) this.#setUp(connection);
      });
    }
  }

  async #open(): Promise<Connection> {
    if (this.#refused && Date.now() < this.#refused.until) throw this.#refused.error;
    this.#setHealth({ health: "connecting" });
    try {
      await this.#hooks.beforeOpen?.(this.name, this.config);
      const known = recall(this.#endpoint) ?? this.#ownVerdict;
      const session = this.#session;
      const { connection, sse } = await openConnection(this.name, this.config, this.#hooks, {
        known,
        signal: this.#closing.signal,
        identified: session && { session, identify: () => this.identify() },
        onClosing: (closing) => this.#track(closing),
      });
      if (this.#closing.signal.aborted) {
        this.#track(connection.close());
        throw closedError(this.name);
      }
      this.#learn(connection, sse, known);
      this.#current = connection;
      connection.onGone = () => this.#drop(connection, undefined);
      this.#setUp(connection);
      return connection;
    } catch (error) {
      if (this.#closing.signal.aborted) throw closedError(this.name);
      const { error: known } = classify(error, { server: this.name, place: "", what: HANDSHAKE, session: false });
      this.#refused = keepRefusal(known);
      this.#setHealth({ health: "down", error: { code: known.code, message: known.message } });
      throw known;
    }
  }

  #learn(connection: Connection, sse: boolean, known: Verdict | undefined): void {
    const discover = connection.sdk.getDiscoverResult();
    const fromMemory = known?.kind === "modern" && connection.era === "modern" && known.discover === discover;
    // opened without a single request: the first one has to show that the server is what it was
    connection.proven = !fromMemory;
    if (fromMemory) return;
    const legacy: Verdict = { kind: sse ? "sse" : "legacy" };
    if (connection.era === "legacy") {
      this.#ownVerdict = this.#endpoint === undefined ? legacy : undefined;
      remember(this.#endpoint, legacy);
    } else {
      this.#forget();
      if (discover && "url" in this.config) remember(this.#endpoint, { kind: "modern", discover });
    }
  }

  /** Kept for the whole process; a transport of the caller's own has no name and is known to this server only. */
  get #endpoint(): string | undefined {
    return endpointOf(this.config, this.#principal);
  }

  #forget(): void {
    this.#ownVerdict = undefined;
    forget(this.#endpoint);
  }

  /** The connection is of no use for whom requests are made now; those of the one before may still end. */
  #leave(): void {
    const current = this.#current;
    this.#current = undefined;
    if (current) this.#track(current.retire());
  }

  #track(closing: Promise<void>): void {
    this.#leftovers.add(closing);
    void closing.finally(() => this.#leftovers.delete(closing));
  }

  #setUp(connection: Connection): void {
    const version = connection.sdk.getServerVersion();
    const revision = connection.sdk.getNegotiatedProtocolVersion();
    const instructions = connection.sdk.getInstructions();
    const contract = connection.contract?.info;
    this.#setHealth({
      health: "up",
      era: connection.era,
      ...(revision !== undefined && { revision }),
      ...(version && { implementation: { name: version.name, version: version.version } }),
      ...(instructions !== undefined && { instructions }),
      capabilities: contract?.capabilities ?? announcedCapabilities(connection.sdk.getServerCapabilities()),
      ...(contract && { contract }),
    });
  }

  #drop(connection: Connection, error: TenonError | undefined): void {
    if (this.#current !== connection) return;
    this.#current = undefined;
    this.#track(connection.retire());
    if (this.#closing.signal.aborted) return;
    const reason = error
      ? { code: error.code, message: error.message }
      : { code: "lost", message: `the connection to server "${this.name}" ended; the next use opens a new one` };
    this.#setHealth({ health: "down", error: reason });
  }

  #setHealth(change: Omit<ServerInfo, "server" | "problems">): void {
    this.#info = Object.freeze({ server: this.name, ...change, problems: this.#info.problems });
    this.#onState(this.#info);
  }
}
