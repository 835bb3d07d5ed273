import { ConnectionError, isLoopback, messageOf, ProtocolError, TenonError } from "@tenon/core";
import { readBounded } from "@tenon/core/internal";
import { Agent, type buildConnector, type Dispatcher, ProxyAgent, request, buildConnector as tcp } from "undici";
import { refusalCode } from "../connection/failure.ts";
import { shownAddress } from "../connection/place.ts";
import { quietly } from "../connection/pool.ts";
import { proxyFor } from "../connection/proxy.ts";

/** Bytes that one answer of a registry may have. */
const MAX_BYTES = 4 * 1024 * 1024;

/** One question to a registry over HTTP. */
export interface Question {
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  /** Milliseconds for the whole answer. */
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
  /** Nobody waits for it: it does not hold the process open. */
  readonly quiet: boolean;
}

/** The answer: JSON, whatever it says. */
export interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

/** The connections to one registry. */
export interface Line {
  /** @throws ConnectionError `registry_unreachable`, ProtocolError `bad_registry` */
  ask(question: Question): Promise<Told>;
  close(): Promise<void>;
}

/** The error of a registry that cannot be asked. */
export function registryUnreachable(place: string, reason: string, cause?: unknown): ConnectionError {
  return new ConnectionError(`the registry at ${place} cannot be asked: ${reason}; it is asked again`, {
    code: "registry_unreachable",
    retryable: true,
    maybeExecuted: false,
    ...(cause !== undefined && { cause }),
  });
}

/** The error of a registry whose answer cannot be used. */
export function badRegistry(place: string, reason: string, cause?: unknown): ProtocolError {
  return new ProtocolError(
    `the registry at ${place} said what cannot be used: ${reason}. What it said last goes on to count`,
    {
      code: "bad_registry",
      maybeExecuted: false,
      ...(cause !== undefined && { cause }),
    },
  );
}

function dispatchers(url: URL, ca: string | readonly string[] | undefined): { loud: Dispatcher; quiet: Dispatcher } {
  const options: buildConnector.BuildOptions = {
    timeout: 5_000,
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca: typeof ca === "string" ? ca : [...ca] }),
  };
  const proxy = isLoopback(url.hostname) ? undefined : proxyFor(url, process.env);
  const limits = { headersTimeout: 0, bodyTimeout: 0 }; // each question has its own
  if (proxy !== undefined) {
    const through = new ProxyAgent({ ...limits, uri: proxy, requestTls: options });
    return { loud: through, quiet: through };
  }
  const connect = tcp(options);
  return { loud: new Agent({ ...limits, connect }), quiet: new Agent({ ...limits, connect: quietly(connect) }) };
}

/** A line to the registry at an address; nothing is opened before it is used. @param ca trusted instead of the system's authorities */
export function openLine(url: URL, ca?: string | readonly string[]): Line {
  let open: ReturnType<typeof dispatchers> | undefined;
  const place = shownAddress(url);
  const ask = async ({ url: to, headers = {}, timeoutMs, signal, quiet }: Question): Promise<Told> => {
    open ??= dispatchers(url, ca);
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), timeoutMs);
    if (quiet) timer.unref();
    try {
      const answer = await request(to, {
        dispatcher: quiet ? open.quiet : open.loud,
        headers: { "user-agent": "tenon", accept: "application/json", ...headers },
        signal: AbortSignal.any([signal, late.signal]),
      });
      const text = await readBounded(answer.body, MAX_BYTES);
      if (text === undefined) throw badRegistry(place, `an answer of more than ${MAX_BYTES} bytes`);
      let body: unknown;
      try {
        body = text === "" ? undefined : JSON.parse(text);
      } catch (cause) {
        // the words of a failure need not be JSON
        if (answer.statusCode < 300) throw badRegistry(place, "an answer that is no JSON", cause);
        body = text;
      }
      return { status: answer.statusCode, headers: answer.headers, body };
    } catch (error) {
      if (error instanceof TenonError) throw error;
      const reason = late.signal.aborted
        ? `no answer within ${timeoutMs} ms`
        : (refusalCode(error) ?? messageOf(error));
      throw registryUnreachable(place, reason, error);
    } finally {
      clearTimeout(timer);
    }
  };
  const close = async (): Promise<void> => {
    const all = open ? [open.loud, open.quiet] : [];
    open = undefined;
    await Promise.all(all.map((dispatcher) => dispatcher.destroy().catch(() => {})));
  };
  return { ask, close };
}

/** The answer of a registry that knows the question. @throws ConnectionError `registry_unreachable` */
export function expectGood(place: string, { status, body }: Told): void {
  if (status >= 200 && status < 300) return;
  const words = typeof body === "string" && body !== "" ? `: ${body.slice(0, 200)}` : "";
  const todo = status === 401 || status === 403 ? "; give it a token that may read" : "";
  throw registryUnreachable(place, `HTTP ${status}${words}${todo}`);
}
