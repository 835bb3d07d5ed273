import { isRecord, type JsonObject, ProtocolError } from "@tenon/core";
import { sendRequest, type WireContext } from "../call/wire.ts";
import type { ReadOptions } from "../types/calls.ts";
import type { SessionContext } from "../types/contracts.ts";

/** Whether a server knows no such session; a replica that keeps contexts of its own may know it. */
function isUnknownContext(error: unknown): boolean {
  if (!(error instanceof ProtocolError) || !isRecord(error.data) || !isRecord(error.data.data)) return false;
  return error.data.data.reason === "unknown_context";
}

/**
 * Asks a server for the last context that it accepted in a session.
 * @param stop ends the request when the client is closed
 * @throws ContractError `no_contract`, `undeclared_capability`; TenonError
 */
export async function contextOf(
  context: WireContext,
  sessionId: string,
  options: ReadOptions,
  stop: AbortSignal,
): Promise<SessionContext> {
  const { server, callId } = context;
  const { name } = server;
  const signal = options.signal ? AbortSignal.any([options.signal, stop]) : stop;
  const answer = await sendRequest(
    { ...context, route: { ...context.route, sessionId } },
    {
      method: "contexts/get",
      what: "contexts/get",
      params: { session_id: sessionId },
      headers: options.headers ?? {},
      meta: options.meta ?? {},
      signal,
      source: Object.freeze({ server: name, callId }),
    },
    {},
    { lacks: isUnknownContext },
  );
  const { context: found, expires_at: expiresAt } = answer as Record<string, unknown>; // an answer is an object
  if (!isRecord(found) || (expiresAt !== undefined && typeof expiresAt !== "string")) {
    throw new ProtocolError(
      `server "${name}" answered contexts/get against the contract: it wants { context, expires_at }`,
      {
        code: "bad_answer",
        server: name,
        maybeExecuted: false,
      },
    );
  }
  return Object.freeze({ context: found as JsonObject, ...(expiresAt !== undefined && { expiresAt }) }); // it came as JSON
}
