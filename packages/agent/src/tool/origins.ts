import { AIMessage } from "@langchain/core/messages";
import { isRecord } from "@tenon/core";
import { mcpMetadata } from "./mcp-tool.ts";

/** Which server's tool the model chose when it wrote a call. */
export interface CallOrigin {
  readonly server: string;
  /** Wire name. */
  readonly tool: string;
  /** Whether `approvals` has to see the call before it runs. */
  readonly gated?: true;
}

const KEY = "tenon_calls"; // in the response metadata, which goes to no provider

type Noted = Readonly<Record<string, CallOrigin>>;

function notedIn(metadata: unknown): Noted | undefined {
  const noted = isRecord(metadata) ? metadata[KEY] : undefined;
  return isRecord(noted) ? (noted as Noted) : undefined; // only withOrigins writes it
}

/** Origins of tools by the name the model knows, for those of MCP servers. */
export function originsOf(tools: readonly unknown[]): ReadonlyMap<string, CallOrigin> {
  return new Map(
    tools.flatMap((tool) => {
      const mcp = isRecord(tool) ? mcpMetadata(tool) : undefined;
      return mcp && isRecord(tool) && typeof tool.name === "string"
        ? [[tool.name, { server: mcp.server, tool: mcp.tool }] as const]
        : [];
    }),
  );
}

/** Response metadata that also says whose tools these names are. Names stand for themselves: ids may be given twice. */
export function withOrigins(
  metadata: Record<string, unknown>,
  names: readonly string[],
  origins: ReadonlyMap<string, CallOrigin>,
): Record<string, unknown> {
  const before = notedIn(metadata);
  const added = names.flatMap((name) => {
    const origin = origins.get(name);
    return origin ? [[name, { ...before?.[name], ...origin }] as const] : [];
  });
  return { ...metadata, [KEY]: { ...before, ...Object.fromEntries(added) } };
}

/**
 * Notes on a model's answer whose tools it calls, in the step that saves the answer: whoever goes on with the thread later may
 * not have those tools, and their names do not say it.
 */
export function noteOrigins(answer: unknown, origins: ReadonlyMap<string, CallOrigin>): void {
  if (!AIMessage.isInstance(answer)) return;
  const names = (answer.tool_calls ?? []).map(({ name }) => name);
  if (names.length === 0) return;
  const noted = withOrigins(answer.response_metadata, names, origins);
  // in place: LangChain tells an answer that was already taken up from a new one by the object
  answer.response_metadata = noted as typeof answer.response_metadata; // what was there, and one key of ours
  answer.lc_kwargs.response_metadata = noted;
}

/** Whose tool a call of this message names, as noted when the model wrote it. */
export function notedOrigin(message: AIMessage | undefined, name: string): CallOrigin | undefined {
  const noted = notedIn(message?.response_metadata);
  return noted && Object.hasOwn(noted, name) ? noted[name] : undefined;
}

/** Whether it was noted at all whose tools the message calls. */
export function hasNotes(message: AIMessage | undefined): boolean {
  return notedIn(message?.response_metadata) !== undefined;
}
