import { json, type LocalEndpoint, localEndpoint } from "./http.ts";
import type { EndpointReply } from "./openai-endpoint.ts";
import { geminiProblem, nameProblem } from "./provider-rules.ts";

interface Part {
  readonly text?: string;
  readonly functionCall?: { readonly name: string };
  readonly functionResponse?: { readonly name: string; readonly response: unknown };
}

/** The parts of a request this endpoint looks at. */
interface Body {
  readonly tools?: readonly { functionDeclarations?: { name: string; parameters?: Record<string, object> }[] }[];
  readonly contents?: readonly { parts?: Part[] }[];
}

/** What Gemini refuses, learned from its error messages. */
function problemOf(body: Body): string | undefined {
  const declared = (body.tools ?? []).flatMap((tool) => tool.functionDeclarations ?? []);
  for (const [at, { name, parameters }] of declared.entries()) {
    const where = `GenerateContentRequest.tools[0].function_declarations[${at}]`;
    const problem = nameProblem(name) ?? (parameters ? geminiProblem(parameters) : undefined);
    if (problem) return `* ${where}: ${problem}`;
    if (parameters && Object.keys(parameters.properties ?? {}).length === 0) {
      return `* ${where}.parameters.properties: should be non-empty for OBJECT type`;
    }
  }
  let open = 0;
  for (const [at, content] of (body.contents ?? []).entries()) {
    const parts: Part[] = content.parts ?? [];
    if (parts.length === 0) return `* contents[${at}].parts: contents.parts must not be empty.`;
    // turns of the same role that follow each other count as one
    const answers = parts.filter((part) => part.functionResponse).length;
    if (answers > open || (open > 0 && answers === 0)) {
      return "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.";
    }
    const bad = parts.find((part) => part.functionResponse && typeof part.functionResponse.response !== "object");
    if (bad) return `* contents[${at}]: function_response.response: Invalid value`;
    open += parts.filter((part) => part.functionCall).length - answers;
  }
  return open > 0 ? "function calls without responses" : undefined;
}

/** A local `:generateContent` endpoint that answers by script and refuses what Gemini refuses. */
export function geminiEndpoint(script: readonly EndpointReply[]): Promise<LocalEndpoint> {
  return localEndpoint((asked, response, at) => {
    const refuse = (status: number, message: string) =>
      json(response, status, { error: { code: status, message, status: "INVALID_ARGUMENT" } });
    if (!/:(generateContent|streamGenerateContent)/.test(asked.url)) return refuse(404, `unknown address ${asked.url}`);
    // what the provider's package sends; what is wrong in it is what is looked for
    const problem = problemOf(asked.body as Body);
    if (problem) return refuse(400, problem);
    const reply = script[Math.min(at, script.length - 1)] ?? {};
    const parts = [
      ...(reply.text ? [{ text: reply.text }] : []),
      ...(reply.calls ?? []).map((call) => ({ functionCall: { name: call.name, args: call.args } })),
    ];
    const usageMetadata = { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 };
    const answer = {
      candidates: [{ index: 0, content: { role: "model", parts }, finishReason: "STOP" }],
      usageMetadata,
    };
    if (!asked.url.includes("streamGenerateContent")) return json(response, 200, answer);
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const part of parts) {
      const finish = part === parts.at(-1) && { finishReason: "STOP" };
      const chunk = { candidates: [{ index: 0, content: { role: "model", parts: [part] }, ...finish }], usageMetadata };
      response.write(`data: ${JSON.stringify(chunk)}\r\n\r\n`);
    }
    response.end();
  });
}
