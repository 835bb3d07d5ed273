import { ConfigError, isLoopback, messageOf } from "@tenon/core";
import {
  checkOptions,
  milliseconds,
  type OptionCheck,
  type OptionChecks,
  refuseOption,
  text,
  urlHost,
} from "@tenon/core/internal";
import type { RegisteredServer, Registrar, Registration } from "./types.ts";

/** Milliseconds between two signs of life. */
const CHECK_MS = 10_000;
/** Without a sign of life for this many of them the instance is not healthy any more. */
const MISSED = 3;
/** After which Consul forgets an instance that is not healthy: it died without a word. */
const FORGET_AFTER = "10m";
/** Milliseconds that one request to Consul may take, and that leaving may: half for what is under way, half to say it. */
const REQUEST_MS = 5_000;
const LEAVE_MS = 1_000;
/** Characters of one value of an instance's meta data. */
const MAX_META = 512;

/** Options of `consul`. */
export interface ConsulOptions {
  /** Address of the agent, for example `http://127.0.0.1:8500`. */
  url: string;
  /** Its ACL token; sent to this address only, over https or to this machine. */
  token?: string;
  /** Name of the service. Default: the server's name. */
  name?: string;
  /** Names the instance. Default: service, address and port, so that a restart takes the place of what was there. */
  id?: string;
  /** The address that clients reach this machine at. Default: the one it listens on, unless that stands for all. */
  address?: string;
  /** Full address of the endpoint, where clients come through something in front. Default: made of scheme, address, port and path. */
  endpoint?: string;
  /** Tags of the instance. Default: `mcp`. */
  tags?: readonly string[];
  /** Milliseconds between two signs of life. Default 10,000. */
  checkIntervalMs?: number;
  /**
   * Address that Consul asks for the instance's health instead, such as `http://10.0.0.7:9030/readyz` of the admin listener. Default: the
   * server tells that it lives.
   */
  health?: string;
}

const address: OptionCheck = (value, where) => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (url && ["http:", "https:"].includes(url.protocol) && url.username === "" && url.password === "") return;
  refuseOption(`${where} must be an http or https address such as http://127.0.0.1:8500, without credentials`);
};
const filled: OptionCheck = (value, where) => {
  text(value, where);
  if (value === "") refuseOption(`${where} must not be empty`);
};
const OPTIONS: OptionChecks<ConsulOptions> = {
  url: address,
  token: text,
  name: filled,
  id: filled,
  address: filled,
  endpoint: address,
  tags: (value, where) => {
    const good = Array.isArray(value) && value.every((tag) => typeof tag === "string");
    if (!good) refuseOption(`${where} must be a list of texts`);
  },
  checkIntervalMs: milliseconds,
  health: address,
};

/** Words with commas, as many as fit. */
function fitting(words: readonly string[]): string {
  let out = "";
  for (const word of words) {
    const longer = out === "" ? word : `${out},${word}`;
    if (longer.length > MAX_META) break;
    out = longer;
  }
  return out;
}

/** The address that clients get. @throws ConfigError `register` */
function addressOf(server: RegisteredServer, options: ConsulOptions): string {
  if (options.address !== undefined) return options.address;
  if (!["0.0.0.0", "::", ""].includes(server.host)) return server.host;
  throw new ConfigError(
    `consul(options) needs an address: the server listens on ${server.host}, which is every address of this machine, and clients need one. ` +
      "Give the one they reach it at",
    { code: "register" },
  );
}

/** What is told of a server, as Consul's agent takes it. */
function instanceOf(server: RegisteredServer, options: ConsulOptions, healthy: boolean) {
  const { name = server.name, tags = ["mcp"], checkIntervalMs = CHECK_MS, health } = options;
  const host = addressOf(server, options);
  const { port, scheme, path } = server;
  const id = options.id ?? `${name}-${host}-${port}`;
  const endpoint = options.endpoint ?? `${scheme}://${urlHost(host)}:${port}${path}`;
  const seconds = (ms: number) => `${Math.max(1, Math.ceil(ms / 1_000))}s`;
  const lives = { CheckID: `service:${id}`, Name: "lives", DeregisterCriticalServiceAfter: FORGET_AFTER };
  const check =
    health === undefined
      ? { ...lives, TTL: seconds(checkIntervalMs * MISSED), ...(healthy && { Status: "passing" }) }
      : { ...lives, HTTP: health, Interval: seconds(checkIntervalMs), Timeout: seconds(REQUEST_MS) };
  return {
    ID: id,
    Name: name,
    Address: host,
    Port: port,
    Tags: tags,
    Meta: {
      mcp_url: endpoint,
      mcp_version: server.version.slice(0, MAX_META),
      mcp_capabilities: fitting(server.capabilities()),
      ...(server.hasContract && { mcp_handshake_url: `${endpoint}/handshake` }),
    },
    Check: check,
  };
}

/** One instance, kept in one agent's catalogue. */
class ConsulRegistration implements Registration {
  readonly #server: RegisteredServer;
  readonly #options: ConsulOptions;
  readonly #base: string;
  readonly #id: string;
  /** What was told last; undefined while the agent is not known to have it. */
  #told: string | undefined;
  #failing = false;
  #timer: NodeJS.Timeout | undefined;
  #closing: Promise<void> | undefined;
  #leaving = false;
  /** Ends the requests that are under way when it leaves. */
  readonly #abort = new AbortController();
  #beating: Promise<void> = Promise.resolve();

  constructor(server: RegisteredServer, options: ConsulOptions) {
    this.#server = server;
    this.#options = options;
    this.#base = options.url.replace(/\/*$/, "/");
    this.#id = instanceOf(server, options, false).ID;
    this.#beating = this.#beat();
  }

  close(): Promise<void> {
    this.#closing ??= (async () => {
      clearTimeout(this.#timer);
      this.#leaving = true;
      // a request that registers must not come after the one that takes it out, as far as that can be waited for
      const late = setTimeout(() => this.#abort.abort(), LEAVE_MS / 2);
      await this.#beating;
      clearTimeout(late);
      const path = `v1/agent/service/deregister/${encodeURIComponent(this.#id)}`;
      await this.#put(path, undefined, LEAVE_MS / 2).catch((error: unknown) => {
        this.#server.log("warning", `Consul was not told that this server leaves: ${messageOf(error)}`);
      });
    })();
    return this.#closing;
  }

  /** A sign of life; registers what the agent does not know, or knows otherwise. */
  async #beat(): Promise<void> {
    try {
      const known = this.#told !== undefined && this.#told === this.#instance(false) && (await this.#isKnown());
      if (!known && !this.#leaving) {
        this.#told = undefined;
        await this.#put("v1/agent/service/register", this.#instance(true), REQUEST_MS);
        this.#told = this.#instance(false);
        this.#server.log("info", `registered with Consul as ${this.#id}`);
      }
      this.#failing = false;
    } catch (error) {
      // said once, not with every beat of an outage
      if (!this.#failing && !this.#leaving) {
        this.#server.log("warning", `Consul does not answer as it should; tried again: ${messageOf(error)}`);
      }
      this.#failing = true;
    }
    if (this.#leaving) return;
    this.#timer = setTimeout(() => {
      this.#beating = this.#beat();
    }, this.#options.checkIntervalMs ?? CHECK_MS);
    this.#timer.unref();
  }

  #instance(healthy: boolean): string {
    return JSON.stringify(instanceOf(this.#server, this.#options, healthy));
  }

  /** Whether the agent still has the instance; an agent that began anew has not. */
  async #isKnown(): Promise<boolean> {
    const id = encodeURIComponent(this.#id);
    const status =
      this.#options.health === undefined
        ? await this.#ask(
            "PUT",
            `v1/agent/check/pass/${encodeURIComponent(`service:${this.#id}`)}`,
            undefined,
            REQUEST_MS,
          )
        : await this.#ask("GET", `v1/agent/service/${id}`, undefined, REQUEST_MS);
    if (status >= 200 && status < 300) return true;
    // older agents answer 500 for a check they do not know
    if (status === 404 || status === 500) return false;
    throw new Error(`HTTP ${status}`);
  }

  async #put(path: string, body: string | undefined, timeoutMs: number): Promise<void> {
    const status = await this.#ask("PUT", path, body, timeoutMs);
    if (status < 200 || status >= 300)
      throw new Error(`HTTP ${status}${status === 403 ? "; give it a token that may write" : ""}`);
  }

  async #ask(method: "GET" | "PUT", path: string, body: string | undefined, timeoutMs: number): Promise<number> {
    const { token } = this.#options;
    const timeout = AbortSignal.timeout(timeoutMs);
    const response = await fetch(new URL(path, this.#base), {
      method,
      headers: { "content-type": "application/json", ...(token !== undefined && { "x-consul-token": token }) },
      redirect: "error",
      signal: this.#leaving ? timeout : AbortSignal.any([timeout, this.#abort.signal]),
      ...(body !== undefined && { body }),
    });
    await response.body?.cancel();
    return response.status;
  }
}

/**
 * Registers a server with Consul when it listens: address, endpoint (`mcp_url`) and capabilities as meta data, a health check, out of
 * it again when the server closes. An agent that forgot it is told again, and so are new capabilities.
 * @throws ConfigError `invalid_option`
 * @example await server.listen({ port: 8030, register: consul({ url: "http://127.0.0.1:8500" }) });
 */
export function consul(options: ConsulOptions): Registrar {
  checkOptions(options, OPTIONS, "consul(options)");
  address(options.url, "consul(options).url");
  const { protocol, hostname } = new URL(options.url);
  if (options.token !== undefined && protocol === "http:" && !isLoopback(hostname)) {
    refuseOption(
      `consul(options).token would be sent unencrypted to ${hostname}; use https, or an agent on this machine`,
    );
  }
  return Object.freeze({ register: (server: RegisteredServer) => new ConsulRegistration(server, options) });
}
