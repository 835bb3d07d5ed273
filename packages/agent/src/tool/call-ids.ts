import { AIMessage } from "@langchain/core/messages";

/** Blocks of content that hold a call. */
const CALL_BLOCKS: ReadonlySet<unknown> = new Set(["tool_use", "tool_call"]);

/** Gives each id that is missing, or was given before, another one: the same for the same message, however often it is read. */
function namer(message: string): (id: unknown) => string {
  const taken = new Set<string>();
  return (given) => {
    const id = typeof given === "string" && given !== "" ? given : `${message}:call`;
    let own = id;
    for (let n = 2; taken.has(own); n += 1) own = `${id}:${n}`;
    taken.add(own);
    return own;
  };
}

/**
 * A model's message in which each call has an id of its own. Endpoints leave ids out or number the calls of one turn alike, and
 * a model may be talked into it: then a decision, an edit or an answer for one call would be taken for the other's.
 * @returns the same message where nothing is wrong with its ids
 */
export function withOwnIds(message: AIMessage): AIMessage {
  const calls = message.tool_calls ?? [];
  const name = namer(message.id ?? "message");
  const ids = calls.map(({ id }) => name(id));
  if (calls.every(({ id }, i) => id === ids[i])) return message;
  let at = 0;
  const content = Array.isArray(message.content)
    ? // the blocks stand in the order of the calls that were read from them
      message.content.map((block) => (CALL_BLOCKS.has(block.type) ? { ...block, id: ids[at++] } : block))
    : message.content;
  const { tool_calls: _, ...additional } = message.additional_kwargs; // the provider's raw copy has the old ids
  return new AIMessage({
    content: content as AIMessage["content"], // same blocks, with other ids
    tool_calls: calls.map((call, i) => ({ ...call, id: ids[i] ?? "" })),
    additional_kwargs: additional,
    response_metadata: message.response_metadata,
    ...(message.id !== undefined && { id: message.id }),
    ...(message.name !== undefined && { name: message.name }),
    ...(message.usage_metadata && { usage_metadata: message.usage_metadata }),
    ...(message.invalid_tool_calls && { invalid_tool_calls: message.invalid_tool_calls }),
  });
}
