import { randomBytes } from "node:crypto";
import { ProtocolError, ProtocolErrorCode } from "@modelcontextprotocol/server";
import { type Json, serializeError, TenonError } from "@tenon/core";
import { toJson } from "@tenon/core/internal";
import { StorageError } from "@tenon/store";
import type { LogLevel, ServerLog } from "./log.ts";

/**
 * An error a tool's author wants the model to read: its message reaches the model verbatim. Anything else that a handler
 * throws is masked and logged under a reference.
 *
 * @example throw new ToolError(`Order ${id} does not exist`)
 */
export class ToolError extends TenonError {
  /**
   * @param options.code stable identifier for programs, default `"tool_error"`
   * @param options.data JSON that goes to the caller as structured content
   */
  constructor(message: string, options: { code?: string; data?: unknown; cause?: unknown } = {}) {
    super(message, { ...options, code: options.code ?? "tool_error" });
  }
}

/** How handlers learn that they were stopped because a question waits for its answer; see {@link isSuspension}. */
export class Suspension extends TenonError {
  constructor(key: string) {
    super(`The call is suspended until the question "${key}" is answered; let this error pass, or rethrow it`, {
      code: "suspended",
      data: { key },
    });
  }
}

/**
 * Whether `error` only says that the call waits for an answer. A `catch` around `ctx.elicit` should rethrow it; the call is
 * suspended in any case, whatever the handler does after it.
 *
 * @example try { await ctx.elicit("Sure?", z.boolean()) } catch (error) { if (isSuspension(error)) throw error; … }
 */
export function isSuspension(error: unknown): boolean {
  return error instanceof Suspension;
}

/** Letters and digits without those that are read as each other. */
const ALPHABET = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/** A short reference that connects what a caller saw with what the log holds. */
function errorReference(): string {
  return [...randomBytes(6)].map((byte) => ALPHABET[byte % ALPHABET.length]).join("");
}

/**
 * What a caller may read about an unexpected error: a reference, under which the log has all of it.
 * @param exposed adds the error's message, for development
 * @param level of the log line
 */
export function maskFailure(
  log: ServerLog,
  what: string,
  error: unknown,
  exposed: boolean,
  level: LogLevel = "error",
): string {
  const reference = errorReference();
  log(level, `${what} failed`, { reference, error });
  const detail = exposed ? `: ${serializeError(error).message}` : "";
  return `${what} failed (reference ${reference})${detail}`;
}

/**
 * The `data` of an error as it may leave: what JSON cannot carry is left out and logged, since the error's message matters
 * more than its data.
 */
export function errorData(log: ServerLog, what: string, data: unknown): Json | undefined {
  if (data === undefined) return undefined;
  try {
    return toJson(data, "data");
  } catch (error) {
    log("error", `${what} failed with data that cannot be sent; it went out without`, { error });
    return undefined;
  }
}

/**
 * What failed before a request had any effect: where the store cannot be written to the caller is told so, and that it did nothing
 * (-32603, `data.reason` `disk_full` or `read_only`).
 * @returns any other failure as it is
 */
export function refusedByStore(log: ServerLog, what: string, error: unknown): unknown {
  if (!(error instanceof StorageError)) return error;
  log("error", `${what} was refused: the store cannot be written to`, { error });
  const text =
    error.code === "disk_full"
      ? "The server's disk is full: this request did nothing. Send it again, unchanged, when there is room"
      : "The server cannot write to its store: this request did nothing. Send it again, unchanged, when it can";
  return new ProtocolError(ProtocolErrorCode.InternalError, text, { reason: error.code });
}
