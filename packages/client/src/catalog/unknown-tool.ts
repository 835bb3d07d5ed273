import { isRecord, ProtocolError } from "@tenon/core";
import { didYouMean } from "@tenon/core/internal";
import type { ToolList } from "./catalog.ts";

/** JSON-RPC codes for a tool that does not exist: that of the protocol, and that of servers which look tools up as methods. */
const INVALID_PARAMS = -32_602;
const METHOD_NOT_FOUND = -32_601;
/** Whether the words say that this very tool does not exist; "Tool x: order not found" is about something else. */
function saysSo(words: string, tool: string): boolean {
  const name = tool.slice(0, 200).replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const before = `\\b(?:unknown|no such|unrecognized) tool\\W{0,5}${name}(?!\\w)`;
  const after = `\\btool\\W{0,5}${name}\\W{1,5}(?:is |was )?(?:not found|unknown|does not exist|doesn't exist)\\b`;
  return new RegExp(`${before}|${after}`, "i").test(words);
}

/** What the server itself wrote; the error's message has our words in front of it. */
function wordsOf(error: ProtocolError, tool: string): string {
  const lead = `refused tools/call ${tool}: `;
  const at = error.message.indexOf(lead);
  return at < 0 ? error.message : error.message.slice(at + lead.length);
}

/** Whether an error is a refusal that means "there is no such tool"; it surely did not run. */
export function isUnknownTool(error: unknown, tools: ToolList, name: string): error is ProtocolError {
  if (!(error instanceof ProtocolError) || error.code !== "rpc_error" || !isRecord(error.data)) return false;
  const { code } = error.data;
  if (code !== INVALID_PARAMS && code !== METHOD_NOT_FOUND) return false;
  // a tool that needs a scope is hidden from the list, and there
  if (isRecord(error.data.data) && error.data.data.reason === "insufficient_scope") return false;
  const missing = code === INVALID_PARAMS && tools.isKnown && !tools.find(name);
  return missing || saysSo(wordsOf(error, name), name);
}

/** Whether a tool's error is nothing but the words by which the SDKs of the older revision say that there is no such tool. */
export function saysUnknown(answer: unknown, name: string): boolean {
  if (!isRecord(answer) || answer.isError !== true || !Array.isArray(answer.content) || answer.content.length !== 1)
    return false;
  const [block] = answer.content;
  const text = isRecord(block) ? block.text : undefined;
  return text === `Unknown tool: ${name}` || text === `MCP error ${INVALID_PARAMS}: Tool ${name} not found`;
}

/**
 * A refusal that means "there is no such tool", as an error that says so, with the name that was probably meant. The server
 * has the last word on its tools, since it may show some to single callers only; so it is asked, and its answer is read here.
 * -32602 stands for wrong arguments as well: it counts when the known list lacks the tool, or the words name it.
 * @returns ProtocolError `unknown_tool`, or the error as it came
 */
export function asUnknownTool(error: unknown, tools: ToolList, server: string, name: string): unknown {
  if (!isUnknownTool(error, tools, name)) return error;
  const words = wordsOf(error, name);
  const known = tools.known.map(({ wireName }) => wireName);
  const near = didYouMean(name, known);
  const hint = near ? `did you mean "${near}"?` : "listTools() tells the names";
  return new ProtocolError(
    `server "${server}" has no tool "${name}"; ${hint}${near ? "" : "."} It answered: ${words}`,
    {
      code: "unknown_tool",
      server,
      maybeExecuted: false,
      data: { ...(isRecord(error.data) && error.data), name, ...(near !== undefined && { near }) },
      cause: error,
    },
  );
}
