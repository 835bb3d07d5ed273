import { type Implementation, ProtocolError, type Result } from "@modelcontextprotocol/server";
import type { Service } from "../dispatch/dispatch.ts";
import { answer } from "../dispatch/protocol.ts";
import type { Exchange } from "../handler/context.ts";
import { requestLog } from "../log.ts";
import type { Recognised } from "./recognise.ts";
import { wireResult } from "./result.ts";

/** Codes that get a status or a code of their own on the way out (2026-07-28, errors). */
const CAPABILITY = -32021;
const URL_ELICITATION = -32042;
const RESOURCE_NOT_FOUND = -32002;
const INVALID_PARAMS = -32602;
const INTERNAL = -32603;

/** How a recognised request ends: its result serialised (bytes where they are kept), or an error and its HTTP status. */
export type Outcome =
  | { readonly json: string | Buffer }
  | {
      readonly status: number;
      readonly error: { readonly code: number; readonly message: string; readonly data?: unknown };
    };

/** An error as the era says it: handler errors stay in the body, only a missing capability has a status of its own. */
function failure(error: unknown, service: Service, { era, requestId, meta }: Exchange): Outcome {
  if (!(error instanceof ProtocolError)) {
    requestLog(service.log, { requestId, meta })("error", "answering failed", { error });
    return { status: 200, error: { code: INTERNAL, message: "Internal error" } };
  }
  const code =
    error.code === RESOURCE_NOT_FOUND
      ? INVALID_PARAMS
      : era === "modern" && error.code === URL_ELICITATION
        ? INTERNAL
        : error.code;
  const status = era === "modern" && code === CAPABILITY ? 400 : 200;
  return { status, error: { code, message: error.message, ...(error.data !== undefined && { data: error.data }) } };
}

/** Answers recognised requests from the dispatcher; pages of lists are serialised once. Never throws. */
export function createAnswering(
  service: Service,
  identity: Implementation,
): (known: Recognised, exchange: Exchange) => Promise<Outcome> {
  const kept = new WeakMap<object, Buffer>();

  async function serialised(known: Recognised, result: Result): Promise<string | Buffer> {
    if (!service.paging.isPage(result)) return JSON.stringify(await wireResult(known, result, identity));
    let bytes = kept.get(result);
    if (!bytes) {
      bytes = Buffer.from(JSON.stringify(await wireResult(known, result, identity)));
      kept.set(result, bytes);
    }
    return bytes;
  }

  return async (known, exchange) => {
    try {
      const result = await answer(service, known.method, known.params, exchange);
      return { json: await serialised(known, result) };
    } catch (error) {
      return failure(error, service, exchange);
    }
  };
}
