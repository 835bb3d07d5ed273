import { ConfigError, ExecutionError, isRecord, ProtocolError } from "@tenon/core";
import { checkOptions } from "@tenon/core/internal";
import type { EventSource } from "../types/events.ts";
import type { ApprovedSampling, SamplingAnswer, SamplingHandler, SamplingRequest } from "../types/questions.ts";

/**
 * Reads the `sampling` option.
 * @throws ConfigError `invalid_option`
 */
export function parseSampling(option: SamplingHandler | ApprovedSampling, where: string): ApprovedSampling {
  if (typeof option === "function") return { approve: () => true, handler: option };
  if (isRecord(option)) {
    checkOptions(option, ["approve", "handler"], where);
    if (typeof option.approve === "function" && typeof option.handler === "function") return option;
  }
  throw new ConfigError(`${where} must be a handler or { approve, handler }, both functions`, {
    code: "invalid_option",
  });
}

function parseRequest(server: string, params: unknown): SamplingRequest {
  const usable = isRecord(params) && Array.isArray(params.messages) && typeof params.maxTokens === "number";
  if (usable) return params as SamplingRequest; // the parts every request must have are there
  throw new ProtocolError(
    `server "${server}" sent a sampling/createMessage without messages or maxTokens; it was not answered`,
    { code: "unsupported_question", server, maybeExecuted: true },
  );
}

/**
 * Has the request approved, then answered by the handler.
 * @throws ExecutionError `sampling_declined`, ProtocolError `unsupported_question`, ConfigError `invalid_answer`
 */
export async function answerSampling(
  { approve, handler }: ApprovedSampling,
  params: unknown,
  source: EventSource & { readonly signal: AbortSignal },
): Promise<SamplingAnswer> {
  const { server } = source;
  const request = parseRequest(server, params);
  // anything but true is no approval, whatever the types say
  if ((await approve(request, source)) !== true) {
    throw new ExecutionError(`the request of server "${server}" to use a model was declined`, {
      code: "sampling_declined",
      server,
      maybeExecuted: true,
    });
  }
  const answer: unknown = await handler(request, source);
  const { role, content, model } = isRecord(answer) ? answer : {};
  if ((role === "assistant" || role === "user") && isRecord(content) && typeof model === "string") {
    return answer as SamplingAnswer; // the parts every answer must have are there
  }
  throw new ConfigError(
    'the sampling handler must return { role: "assistant", content: { type: "text", text }, model }, got ' +
      (JSON.stringify(answer)?.slice(0, 200) ?? typeof answer),
    { code: "invalid_answer", server, maybeExecuted: true },
  );
}
