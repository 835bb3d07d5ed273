import { AuthError, ConnectionError, isRecord } from "@tenon/core";
import type { InvalidReason } from "./types.ts";

/**
 * A token that is not taken.
 * @param message may be read by its caller, so it holds nothing of the token
 * @param expected for the log: what this server is configured to take
 */
export const invalidToken = (reason: InvalidReason, message: string, expected?: readonly string[]): AuthError =>
  new AuthError(message, { code: "invalid_token", data: { reason, ...(expected && { expected }) } });

/** What {@link invalidToken} was given, for the log; the reason is anything else for an error of another making. */
export function refusalOf({ data }: AuthError): { reason: unknown; expected?: unknown } {
  const { reason, expected } = isRecord(data) ? data : {};
  return { reason, ...(expected !== undefined && { expected }) };
}

/** Whether a token is good cannot be found out now: neither yes nor no. @param message for the log */
export const unavailable = (message: string, cause?: unknown): ConnectionError =>
  new ConnectionError(message, { code: "auth_unavailable", retryable: true, cause });
