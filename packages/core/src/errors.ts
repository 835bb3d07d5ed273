/** The code of an error, for example `ENOENT` of the operating system or `unreachable` of ours; undefined where it has none. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** What an error says, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What every Tenon error can say about itself besides its message. */
export interface TenonErrorOptions {
  /** Stable identifier a program may compare, for example `"unreachable"`. */
  code: string;
  /** True when the same call may succeed later without any change. Default false. */
  retryable?: boolean;
  /** True when the call may have taken effect on the server although no answer arrived. */
  maybeExecuted?: boolean;
  /** Configured name of the server the error is about. */
  server?: string;
  /** Machine-readable detail; must be JSON. */
  data?: unknown;
  /** The error underneath, for people who look for the reason; not sent to anybody. */
  cause?: unknown;
}

/** An error as plain JSON: what a checkpoint, an audit entry or a worker thread can carry. */
export interface SerializedError {
  name: string;
  message: string;
  code: string;
  retryable?: boolean;
  maybeExecuted?: boolean;
  server?: string;
  data?: unknown;
}

/**
 * Base of all errors Tenon throws. `message` says what was given, what was expected and what to do; `code` is stable.
 * `cause` keeps the error underneath.
 */
export class TenonError extends Error {
  readonly code: string;
  readonly retryable: boolean;
  readonly maybeExecuted: boolean | undefined;
  readonly server: string | undefined;
  readonly data: unknown;

  constructor(message: string, options: TenonErrorOptions) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = options.code;
    this.retryable = options.retryable ?? false;
    this.maybeExecuted = options.maybeExecuted;
    this.server = options.server;
    this.data = options.data;
  }

  /** The error without stack and cause, safe to store or send. */
  toJSON(): SerializedError {
    return {
      name: this.name,
      message: this.message,
      code: this.code,
      ...(this.retryable && { retryable: true }),
      ...(this.maybeExecuted !== undefined && { maybeExecuted: this.maybeExecuted }),
      ...(this.server !== undefined && { server: this.server }),
      ...(this.data !== undefined && { data: this.data }),
    };
  }
}

/** A definition or an option is wrong: nothing was sent, the program must be changed. */
export class ConfigError extends TenonError {}
/** The network or the other process: unreachable, lost, timed out, closed. */
export class ConnectionError extends TenonError {}
/** The context contract was refused: negotiation, signature, a missing or wrong context value. */
export class ContractError extends TenonError {}
/** A tool ran and failed, or could not be run with these arguments. */
export class ExecutionError extends TenonError {}
/** The peer broke the protocol, or refused a request with a JSON-RPC error (`data` holds its code). */
export class ProtocolError extends TenonError {}
/** A credential is missing, wrong, expired or not sufficient. */
export class AuthError extends TenonError {}
/** What is trusted forbids it: a tool changed or was never accepted, is not granted, an address leads elsewhere. Nothing was sent. */
export class TrustError extends TenonError {}

const classes: Readonly<Record<string, typeof TenonError>> = {
  TenonError,
  ConfigError,
  ConnectionError,
  ContractError,
  ExecutionError,
  ProtocolError,
  AuthError,
  TrustError,
};

/** What is thrown may be anything, also a value that cannot be turned into text. */
function textOf(thrown: unknown): string {
  try {
    return String(thrown);
  } catch {
    return `a thrown ${typeof thrown} without a text of its own`;
  }
}

/** Anything thrown as plain JSON; an error that is not ours gets the code `"unexpected"`. Never throws. */
export function serializeError(error: unknown): SerializedError {
  if (error instanceof TenonError) return error.toJSON();
  if (error instanceof Error) return { name: error.name, message: textOf(error.message), code: "unexpected" };
  return { name: "Error", message: textOf(error), code: "unexpected" };
}

/** The typed error that `serializeError` wrote down; an unknown class becomes a `TenonError` with its name kept. */
export function deserializeError(json: SerializedError): TenonError {
  const known = Object.hasOwn(classes, json.name) ? classes[json.name] : undefined;
  const error = new (known ?? TenonError)(json.message, json);
  if (!known) error.name = json.name;
  return error;
}

/**
 * Whether trying the same call again can help. Fits LangGraph's `retryPolicy.retryOn`.
 * False for a call that may already have taken effect.
 */
export function isRetryable(error: unknown): boolean {
  return error instanceof TenonError && error.retryable && error.maybeExecuted !== true;
}
