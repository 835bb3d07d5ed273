import {
  type Implementation,
  isInputRequiredResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  SERVER_INFO_META_KEY,
  specTypeSchemas,
} from "@modelcontextprotocol/server";
import { isRecord } from "@tenon/core";
import { CACHEABLE } from "../definition/cache.ts";
import { abilityFor, lacking } from "../dispatch/capabilities.ts";
import type { Method } from "../dispatch/dispatch.ts";
import type { Recognised } from "./recognise.ts";

const cacheable: ReadonlySet<string> = new Set(CACHEABLE);

/** Refuses a question that the client did not say it can answer: modern by -32021, legacy as its era does. */
function gate(request: Recognised, result: Result): Result {
  const asked = isRecord(result.inputRequests) ? Object.entries(result.inputRequests) : [];
  if (asked.length === 0 && typeof result.requestState !== "string") {
    throw new ProtocolError(ProtocolErrorCode.InternalError, "A question without a request or a state went out");
  }
  for (const [key, entry] of asked) {
    const kind = isRecord(entry) ? String(entry.method) : "";
    const ability = abilityFor(entry);
    if (!ability) throw new ProtocolError(ProtocolErrorCode.InternalError, `${kind} is no request a result may carry`);
    const requiredCapabilities = lacking(ability, request.client.capabilities);
    if (!requiredCapabilities) continue;
    if (request.era === "modern") {
      throw new MissingRequiredClientCapabilityError(
        { requiredCapabilities },
        `Cannot request input '${key}' (${kind}): the request's client capabilities do not declare the required capability`,
      );
    }
    return refuseLegacy(
      request.method,
      `Cannot request input '${key}' (${kind}): a call without a session cannot be asked back`,
    );
  }
  return request.era === "modern"
    ? result
    : refuseLegacy(request.method, "A call without a session cannot be asked back");
}

function refuseLegacy(method: Method, message: string): Result {
  if (method === "tools/call") return { content: [{ type: "text", text: message }], isError: true };
  throw new ProtocolError(ProtocolErrorCode.InternalError, message);
}

/** Results of text alone are right by construction; only what an author built by hand needs the schema. */
function isPlainCall(result: Result, era: Recognised["era"]): boolean {
  for (const key in result) if (key !== "content" && key !== "structuredContent" && key !== "isError") return false;
  if (result.isError !== undefined && typeof result.isError !== "boolean") return false;
  const structured = result.structuredContent;
  if (structured !== undefined && era === "legacy" && !isRecord(structured)) return false;
  return (
    Array.isArray(result.content) &&
    result.content.every(
      (block: unknown) =>
        isRecord(block) && block.type === "text" && typeof block.text === "string" && Object.keys(block).length === 2,
    )
  );
}

async function checkCall(result: Result, era: Recognised["era"]): Promise<Result> {
  if (isPlainCall(result, era)) return result;
  if (result.resultType !== undefined && result.resultType !== "complete") return result; // an extension's own kind
  const checked = await specTypeSchemas.CallToolResult["~standard"].validate(result);
  if (!checked.issues) return checked.value;
  const [issue] = checked.issues;
  throw new ProtocolError(ProtocolErrorCode.InvalidParams, `Invalid tools/call result: ${issue?.message ?? ""}`);
}

/** The members every modern result carries, where its author did not set them. */
function stamp(method: Method, result: Result, server: Implementation): Result {
  const out: Record<string, unknown> = { ...result };
  out.resultType ??= "complete";
  if (out.resultType === "complete" && cacheable.has(method)) {
    out.ttlMs ??= 0;
    out.cacheScope ??= "private";
  }
  if (out._meta === undefined) out._meta = { [SERVER_INFO_META_KEY]: server };
  else if (isRecord(out._meta) && out._meta[SERVER_INFO_META_KEY] === undefined) {
    out._meta = { ...out._meta, [SERVER_INFO_META_KEY]: server };
  }
  return out;
}

/**
 * What the dispatcher returned as it goes over the wire of the request's era.
 * @throws ProtocolError when it must not go out: a question the client cannot answer, a result that is none
 */
export async function wireResult(request: Recognised, result: Result, server: Implementation): Promise<Result> {
  const checked = isInputRequiredResult(result)
    ? gate(request, result)
    : request.method === "tools/call"
      ? await checkCall(result, request.era)
      : result;
  return request.era === "modern" ? stamp(request.method, checked, server) : checked;
}
