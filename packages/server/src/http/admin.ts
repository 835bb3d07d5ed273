import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { ConnectionError, codeOf, isRecord, messageOf } from "@tenon/core";
import { checkOptions, kindOf, type OptionChecks, refuseOption, text, urlHost, zeroOrMore } from "@tenon/core/internal";
import { within } from "../handler/within.ts";
import type { ServerLog } from "../log.ts";

/** Where a server answers the questions of who operates it. */
export interface AdminOptions {
  /** TCP port of its own; 0 takes a free one. */
  port: number;
  /**
   * Address to bind. Default 127.0.0.1. Whoever reaches it learns whether the server works, and its numbers where `metrics` is
   * given, and nothing else; a probe that comes from another machine needs the address it comes to.
   */
  host?: string;
  /** What else must answer before it takes requests, by the name that `/readyz` says is missing. Each has two seconds. */
  needs?: Readonly<Record<string, () => Promise<unknown>>>;
  /**
   * What `/metrics` answers, in the text format of Prometheus: what `openTelemetry()` of `@tenon/telemetry` returns is one.
   * Default: `/metrics` is not there.
   */
  metrics?: {
    /** All numbers there are, asked each time. */
    text(): Promise<string>;
  };
}

/** A listener for health checks. */
export interface AdminListening {
  /** Its address, for example `http://127.0.0.1:9030`. */
  readonly url: string;
  /** The TCP port that was taken. */
  readonly port: number;
  /** Stops answering. The server closes it as well, last of all. */
  close(): Promise<void>;
}

const OPTIONS: OptionChecks<AdminOptions> = {
  port: zeroOrMore("ports"),
  host: text,
  metrics(given, where) {
    if (isRecord(given) && typeof given.text === "function") return;
    refuseOption(
      `${where} must have a function text(), as what openTelemetry() of @tenon/telemetry returns, got ${kindOf(given)}`,
    );
  },
  needs(given, where) {
    if (isRecord(given) && Object.values(given).every((need) => typeof need === "function")) return;
    refuseOption(`${where} must be an object of functions, got ${kindOf(given)}`);
  },
};

/** Milliseconds that what is needed may take to answer: probes give up after some seconds. */
const CHECK_MS = 2_000;
/** Milliseconds that numbers may take to be collected. */
const METRICS_MS = 8_000;
const PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8";
const NO_METRICS =
  "This server keeps no metrics; give admin() what openTelemetry() of @tenon/telemetry returns: admin({ port, metrics: telemetry })";
/** Milliseconds that a probe may take to send its request. */
const REQUEST_MS = 5_000;

/** What a server needs before it takes requests, asked each time. One that rejects, or takes two seconds, is missing. */
interface Needs {
  readonly lifespan: () => Promise<unknown>;
  readonly store: () => Promise<unknown>;
  readonly more?: AdminOptions["needs"];
  /** Whether it closes. */
  readonly isClosing: () => boolean;
  /** Hears why something is missing: whoever asks is told no more than what. */
  readonly log: ServerLog;
}

type Metrics = NonNullable<AdminOptions["metrics"]>;
/** What is missing, by its name. */
type Check = () => Promise<string | undefined>;

/** Looks once for all that ask at the same moment. */
function createCheck({ lifespan, store, more = {}, isClosing, log }: Needs): Check {
  async function look(): Promise<string | undefined> {
    const parts = Object.entries({ lifespan, store, ...more });
    for (const [name, part] of parts) {
      try {
        await within(CHECK_MS, part(), () => new Error(`it did not answer within ${CHECK_MS} ms`));
      } catch (error) {
        log("warning", `not ready: ${name}: ${messageOf(error)}`);
        return name;
      }
    }
    return undefined;
  }
  let looking: Promise<string | undefined> | undefined;
  return async () => {
    if (isClosing()) return "closing";
    looking ??= look().finally(() => {
      looking = undefined;
    });
    const missing = await looking;
    return isClosing() ? "closing" : missing;
  };
}

function answer(response: ServerResponse, status: number, body: Readonly<Record<string, string>>): void {
  const headers = { "content-type": "application/json", "cache-control": "no-store" };
  response.writeHead(status, headers).end(`${JSON.stringify(body)}\n`); // node leaves the body out where HEAD was asked
}

/** Says all numbers, or why they cannot be told now. */
async function tell(response: ServerResponse, metrics: Metrics, log: ServerLog): Promise<void> {
  try {
    const text = await within(METRICS_MS, metrics.text(), () => new Error(`not collected within ${METRICS_MS} ms`));
    response.writeHead(200, { "content-type": PROMETHEUS, "cache-control": "no-store" }).end(text);
  } catch (error) {
    log("warning", `metrics could not be collected: ${messageOf(error)}`);
    answer(response, 503, { error: "The metrics could not be collected; the server's log says why" });
  }
}

/** What the paths of an admin port are answered with. */
interface Answers {
  readonly check: Check;
  readonly metrics: Metrics | undefined;
  readonly log: ServerLog;
}

async function respond(
  { method, url = "/" }: IncomingMessage,
  response: ServerResponse,
  { check, metrics, log }: Answers,
): Promise<void> {
  const [path] = url.split("?");
  if (path !== "/healthz" && path !== "/readyz" && path !== "/metrics") {
    return answer(response, 404, { error: "Nothing here; there are /healthz, /readyz and /metrics" });
  }
  if (method !== "GET" && method !== "HEAD") {
    response.setHeader("allow", "GET, HEAD");
    return answer(response, 405, { error: `${path} is read with GET` });
  }
  if (path === "/metrics") return metrics ? tell(response, metrics, log) : answer(response, 404, { error: NO_METRICS });
  const missing = path === "/healthz" ? undefined : await check();
  if (missing !== undefined) return answer(response, 503, { status: "not ready", missing });
  return answer(response, 200, { status: path === "/healthz" ? "ok" : "ready" });
}

/**
 * Answers health checks on a port of its own: `/healthz` says that the process lives, `/readyz` whether it takes requests.
 * @throws ConnectionError `code: "port_in_use"`, `"listen"`; ConfigError `"invalid_option"`, `"unknown_option"`
 */
export async function openAdmin(options: AdminOptions, needs: Needs): Promise<AdminListening> {
  checkOptions(options, OPTIONS, "admin(options)");
  const { port, host = "127.0.0.1", metrics, needs: more } = options;
  if (port === undefined) refuseOption("admin(options) needs a port; 0 takes a free one");
  const check = createCheck({ ...needs, ...(more && { more }) });
  const server = createServer({ headersTimeout: REQUEST_MS, requestTimeout: REQUEST_MS }, (request, response) => {
    request.resume(); // nothing is read from it
    void respond(request, response, { check, metrics, log: needs.log });
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const taken = codeOf(cause) === "EADDRINUSE";
      const why = taken ? "is in use; choose another one" : `could not be opened (${messageOf(cause)})`;
      reject(
        new ConnectionError(`The admin port ${port} on ${host} ${why}`, {
          code: taken ? "port_in_use" : "listen",
          cause,
        }),
      );
    });
    // of this process, also among the workers of a cluster: otherwise whoever has the turn would answer for another
    server.listen({ port, host, exclusive: true }, () => resolve());
  });
  const bound = server.address() as AddressInfo; // a TCP server has one once it listens
  let closed: Promise<void> | undefined;
  return {
    url: `http://${urlHost(host)}:${bound.port}`,
    port: bound.port,
    close() {
      closed ??= new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
      return closed;
    },
  };
}
