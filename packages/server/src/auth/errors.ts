import { AuthError, ConnectionError, isRecord } from "@tenon/core";
import type { InvalidReason } from "./types.ts";

/** A token that is not taken. @param message may be read by its caller, so it holds nothing of the token */
export const invalidToken = (reason: InvalidReason, message: string): AuthError =>
  new AuthError(message, { code: "invalid_token", data: { reason } });

/** What {@link invalidToken} was given; anything else for an error of another making. */
export const reasonOf = (error: AuthError): unknown => (isRecord(error.data) ? error.data.reason : undefined);

/** Whether a token is good cannot be found out now: neither yes nor no. @param message for the log */
export const unavailable = (message: string, cause?: unknown): ConnectionError =>
  new ConnectionError(message, { code: "auth_unavailable", retryable: true, cause });
