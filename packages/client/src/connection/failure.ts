import {
  InsufficientScopeError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  ProtocolError as SdkProtocolError,
} from "@modelcontextprotocol/client";
import { AuthError, ConnectionError, isRecord, messageOf, ProtocolError, TenonError } from "@tenon/core";
import { unmetContract } from "../contract/refusals.ts";
import { StreamEndedError } from "./transport.ts";
import { unreadableReason } from "./unreadable.ts";

/** What went wrong, whether the request can have run, and whether the connection is of further use. */
export interface Failure {
  readonly error: TenonError;
  readonly ran: "no" | "maybe";
  readonly dead: boolean;
}

/** Where a request went, for the error's words. */
export interface Target {
  readonly server: string;
  /** Its address or command line. */
  readonly place: string;
  /** The request, for example `tools/call query_order`. */
  readonly what: string;
  /** True on a connection with a session id of the older revision. */
  readonly session: boolean;
}

/** What is going on while a connection is opened. */
export const HANDSHAKE = "the handshake";

/** Characters of a server's own words in an error. */
const MAX_SHOWN = 4_000;

const NEVER_CONNECTED = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

/** What OpenSSL calls a certificate that leads to no authority this client trusts. Nothing is sent before it is checked. */
const UNTRUSTED = new Set([
  "DEPTH_ZERO_SELF_SIGNED_CERT",
  "SELF_SIGNED_CERT_IN_CHAIN",
  "UNABLE_TO_GET_ISSUER_CERT",
  "UNABLE_TO_GET_ISSUER_CERT_LOCALLY",
  "UNABLE_TO_VERIFY_LEAF_SIGNATURE",
]);

/** An error and everything underneath it. */
export function* causes(error: unknown): Generator<object> {
  const queue = [error];
  for (let steps = 0; queue.length > 0 && steps < 20; steps++) {
    const next = queue.shift();
    if (typeof next !== "object" || next === null) continue;
    yield next;
    if ("cause" in next) queue.push(next.cause);
    if ("errors" in next && Array.isArray(next.errors)) queue.push(...next.errors);
  }
}

/** The operating system's or the HTTP client's code for a connection that was never made, for example `ECONNREFUSED`. */
export function refusalCode(error: unknown): string | undefined {
  for (const cause of causes(error)) {
    if (!("code" in cause) || typeof cause.code !== "string") continue;
    if (NEVER_CONNECTED.has(cause.code)) return cause.code;
    if ("syscall" in cause && typeof cause.syscall === "string" && /^(connect|spawn)/.test(cause.syscall)) {
      return cause.code;
    }
  }
  return undefined;
}

/** What is wrong with a server's certificate, when no authority that this client trusts vouches for it. */
function untrustedReason(error: unknown): string | undefined {
  for (const cause of causes(error)) {
    if (cause instanceof Error && "code" in cause && UNTRUSTED.has(String(cause.code))) return cause.message;
  }
  return undefined;
}

function rpcErrorIn(text: unknown): { code: number; message: string; data: unknown } | undefined {
  if (typeof text !== "string") return undefined;
  try {
    const body: unknown = JSON.parse(text);
    const error = isRecord(body) ? body.error : undefined;
    if (!isRecord(error) || typeof error.code !== "number") return undefined;
    return { code: error.code, message: String(error.message ?? ""), data: error.data };
  } catch {
    return undefined;
  }
}

/** The error for a server that cannot be reached; nothing ran. */
export function unreachable(
  target: Omit<Target, "what" | "session">,
  reason: string,
  cause?: unknown,
): ConnectionError {
  const todo = untrustedReason(cause)
    ? "If the certificate is yours, give that of its authority as `ca` (PEM text)"
    : "Check that it is running and that the address or command is right";
  return new ConnectionError(
    `server "${target.server}" cannot be reached at ${target.place}: ${reason}. ${todo}; the next call tries again`,
    { code: "unreachable", server: target.server, retryable: true, maybeExecuted: false, cause },
  );
}

function lost({ server, place, what }: Target, reason: string, cause: unknown): Failure {
  const error = new ConnectionError(
    `the connection to server "${server}" (${place}) was lost during ${what}: ${reason}. The request may have taken ` +
      "effect: check before you repeat it",
    { code: "lost", server, retryable: true, maybeExecuted: true, cause },
  );
  return { error, ran: "maybe", dead: true };
}

/**
 * JSON-RPC codes of a request that was refused before anything ran: no JSON, no request, no such method, wrong parameters;
 * no such resource; wrong headers, a capability or a revision that is missing, an address to visit first (2026-07-28,
 * 2025-11-25). Any other, -32603 above all, may come from the middle of the work.
 */
const BEFORE_IT_RAN = new Set([-32_700, -32_600, -32_601, -32_602, -32_002, -32_020, -32_021, -32_022, -32_042]);

/** What to do about an error that the server's own words say too little of; begins with a space, or is empty. */
export const hintFor = (code: number): string =>
  code === ProtocolErrorCode.MissingRequiredClientCapability
    ? " (the server needs something this client does not offer; for questions to a person set `elicitation`)"
    : "";

/** @param status of the HTTP answer, where it was one that says the request itself is at fault */
function refused(
  { server, what }: Target,
  { code, message, data }: { code: number; message: string; data?: unknown },
  cause: unknown,
  status = 200,
): Failure {
  const shown = message.length > MAX_SHOWN ? `${message.slice(0, MAX_SHOWN)}…` : message;
  const unmet = unmetContract(server, what, shown, data);
  if (unmet) return { error: unmet, ran: "no", dead: false };
  const error = new ProtocolError(`server "${server}" refused ${what}: ${shown} (JSON-RPC ${code})${hintFor(code)}`, {
    code: "rpc_error",
    server,
    maybeExecuted: !BEFORE_IT_RAN.has(code) && !(status >= 400 && status < 500),
    data: { code, ...(data !== undefined && { data }) },
    cause,
  });
  return { error, ran: "no", dead: false };
}

function timedOut({ server, what }: Target, cause: unknown): Failure {
  const error = new ConnectionError(`${what} on server "${server}" got no answer in time`, {
    code: "timeout",
    server,
    retryable: true,
    maybeExecuted: true,
    cause,
  });
  return { error, ran: "maybe", dead: false };
}

function badAnswer({ server, what }: Target, reason: string, cause: unknown): Failure {
  const error = new ProtocolError(`server "${server}" answered ${what} against the protocol: ${reason}`, {
    code: "bad_answer",
    server,
    maybeExecuted: true,
    cause,
  });
  return { error, ran: "maybe", dead: false };
}

/** A 403 that names what the credential lacks. */
function lacksScope({ server, place, what }: Target, cause: InsufficientScopeError): Failure {
  const error = new AuthError(
    `server "${server}" (${place}) refused ${what} with HTTP 403 (${cause.message.slice(0, MAX_SHOWN)}): use a credential with more rights`,
    { code: "forbidden", server, maybeExecuted: false, data: { status: 403 }, cause },
  );
  return { error, ran: "no", dead: false };
}

function httpFailure(target: Target, error: SdkHttpError): Failure {
  const { server, place, what, session } = target;
  const { status, text } = error.data;
  const details = { server, data: { status }, cause: error };
  const notRun = { ...details, maybeExecuted: false };
  if (status === 401 || status === 403) {
    const code = status === 401 ? "unauthorized" : "forbidden";
    const todo =
      status === 401
        ? "give the server `auth`, such as bearer(token) or oauth() of @tenon/client/auth, or a credential in its `headers`"
        : "use a credential with more rights";
    const message = `server "${server}" (${place}) refused ${what} with HTTP ${status}: ${todo}`;
    return { error: new AuthError(message, { ...notRun, code }), ran: "no", dead: false };
  }
  const rpc = rpcErrorIn(text);
  // some servers that lost their sessions answer 400 although the revision asks for 404
  if (session && (status === 404 || (status === 400 && /session|not initialized/i.test(rpc?.message ?? "")))) {
    const message = `server "${server}" (${place}) has forgotten the session of this client; ${what} did not run`;
    const options = { ...notRun, code: "session_lost", retryable: true };
    return { error: new ConnectionError(message, options), ran: "no", dead: true };
  }
  // the request after `initialize` went to a process that knows nothing of it
  if (what === HANDSHAKE && status === 404 && /session/i.test(rpc?.message ?? "")) {
    const message =
      `server "${server}" (${place}) forgot the session of this client while it was opened: several processes answer there, and each ` +
      "knows its own sessions. Let the load balancer keep all requests of one Mcp-Session-Id with one process";
    const options = { ...notRun, code: "session_lost", retryable: true };
    return { error: new ConnectionError(message, options), ran: "no", dead: true };
  }
  if (rpc) return refused(target, rpc, error, status);
  const ran = status >= 500 && status !== 503 ? "maybe" : "no";
  const shown = typeof text === "string" && text !== "" ? `: ${text.slice(0, 200)}` : "";
  const message = `server "${server}" (${place}) answered ${what} with HTTP ${status}${shown}`;
  const retryable = status === 429 || status >= 500;
  return {
    error: new ConnectionError(message, { ...details, code: "http_error", retryable, maybeExecuted: ran === "maybe" }),
    ran,
    dead: false,
  };
}

/** Makes one of Tenon's errors of whatever the SDK or the network threw, and says what it means for a retry. */
export function classify(thrown: unknown, target: Target): Failure {
  for (const own of causes(thrown)) {
    // the SDK wraps what a handshake met
    if (own instanceof TenonError)
      return { error: own, ran: own.maybeExecuted === false ? "no" : "maybe", dead: false };
  }
  if (SdkProtocolError.isInstance(thrown)) {
    const unreadable = unreadableReason(thrown);
    if (unreadable !== undefined) return badAnswer(target, unreadable, thrown);
    return refused(target, thrown, thrown);
  }
  if (SdkHttpError.isInstance(thrown)) return httpFailure(target, thrown);
  for (const cause of causes(thrown)) {
    if (cause instanceof InsufficientScopeError) return lacksScope(target, cause);
  }
  const code = refusalCode(thrown);
  if (code) return { error: unreachable(target, code, thrown), ran: "no", dead: true };
  const untrusted = untrustedReason(thrown);
  if (untrusted) return { error: unreachable(target, untrusted, thrown), ran: "no", dead: true };
  if (thrown instanceof StreamEndedError) {
    return thrown.unreadable === undefined
      ? lost(target, thrown.message, thrown)
      : badAnswer(target, `its stream ended after an event that could not be read (${thrown.unreadable})`, thrown);
  }
  const message = messageOf(thrown);
  if (SdkError.isInstance(thrown)) {
    switch (thrown.code) {
      case SdkErrorCode.NotConnected:
        return { error: unreachable(target, "the connection was closed", thrown), ran: "no", dead: true };
      case SdkErrorCode.RequestTimeout:
        return timedOut(target, thrown);
      case SdkErrorCode.ConnectionClosed:
        return lost(target, "it was closed", thrown);
      case SdkErrorCode.InvalidResult:
      case SdkErrorCode.UnsupportedResultType:
      case SdkErrorCode.ClientHttpUnexpectedContent:
      case SdkErrorCode.MethodNotSupportedByProtocolVersion:
        return badAnswer(target, message, thrown);
      case SdkErrorCode.EraNegotiationFailed:
        return { error: unreachable(target, message, thrown), ran: "no", dead: true };
    }
  }
  if (thrown instanceof Error && thrown.message === "Not connected") {
    return { error: unreachable(target, "the connection was closed", thrown), ran: "no", dead: true };
  }
  const parsing = thrown instanceof SyntaxError || (thrown instanceof Error && thrown.name === "ZodError");
  const reason = thrown instanceof SyntaxError ? message : "it is no message of the protocol";
  return parsing ? badAnswer(target, reason, thrown) : lost(target, message, thrown);
}
