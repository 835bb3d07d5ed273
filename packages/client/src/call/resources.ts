import { isRecord, ProtocolError, TenonError } from "@tenon/core";
import { jsonSize } from "@tenon/core/internal";
import { type AnswerCache, freshnessOf, identityOf } from "../catalog/cache.ts";
import type { ToolList } from "../catalog/catalog.ts";
import { fetchAll, type ListMethod, recordAt, textAt } from "../catalog/pages.ts";
import type { Connection } from "../connection/connection.ts";
import type { Endpoint } from "../connection/endpoint.ts";
import type { ReadOptions } from "../types/calls.ts";
import type {
  CatalogPrompt,
  CatalogResource,
  CatalogResourceTemplate,
  PromptMessage,
  ResourceBlob,
} from "../types/catalog.ts";
import type { EventSource } from "../types/events.ts";
import { answerByHandler, untilFinal } from "./rounds.ts";
import { tooLarge } from "./size.ts";
import { type ReadMethod, tracedRead } from "./trace.ts";
import { sendRequest, type WireContext, type WireRequest } from "./wire.ts";

/** Resources read at the same time. */
const AT_ONCE = 16;

/** A server and what is kept of its answers. */
export interface Source {
  readonly server: Endpoint;
  readonly cache: AnswerCache;
  /** Where `client.servers()` learns what is wrong with a list. */
  readonly tools: Pick<ToolList, "doubt" | "settle">;
}

function labels(item: Record<string, unknown>): { title?: string; description?: string; mimeType?: string } {
  const title = textAt(item, "title");
  const description = textAt(item, "description");
  const mimeType = textAt(item, "mimeType");
  return {
    ...(title !== undefined && { title }),
    ...(description !== undefined && { description }),
    ...(mimeType !== undefined && { mimeType }),
  };
}

async function listOf(
  { server, cache, tools }: Source,
  method: Exclude<ListMethod, "tools/list">,
  offered: (connection: Connection) => boolean,
): Promise<Record<string, unknown>[]> {
  // the lists are asked for with the server's own headers only
  const identity = await server.identify();
  const kept = cache.get(method, identity);
  if (kept) return kept as Record<string, unknown>[]; // as it was put there below
  const fetch = async (connection: Connection) =>
    offered(connection) ? await fetchAll(connection, method) : { items: [], freshness: {} };
  const fetched = await server.use(method, fetch, true).catch((error: unknown) => {
    // a server that is down says so itself
    if (server.info.health === "up" && error instanceof TenonError) tools.doubt(method, error.message);
    throw error;
  });
  tools.settle(method);
  const items = fetched.items.filter(isRecord);
  if (identity === (await server.identify())) cache.set(method, identity, fetched.freshness, items);
  return items;
}

const hasResources = ({ contract, sdk }: Connection) =>
  sdk.getServerCapabilities()?.resources !== undefined &&
  contract?.declares("resources.list", "resources.read") !== false;
const hasPrompts = ({ contract, sdk }: Connection) =>
  sdk.getServerCapabilities()?.prompts !== undefined && contract?.declares("prompts.list", "prompts.get") !== false;

/** The resources a server lists; entries without an address are left out. */
export async function listResourcesOf(source: Source): Promise<CatalogResource[]> {
  const items = await listOf(source, "resources/list", hasResources);
  return items.flatMap((item) => {
    const uri = textAt(item, "uri");
    if (uri === undefined) return [];
    return [{ server: source.server.name, uri, name: textAt(item, "name") ?? uri, ...labels(item) }];
  });
}

/** The resource templates a server lists; entries without an address are left out. */
export async function listResourceTemplatesOf(source: Source): Promise<CatalogResourceTemplate[]> {
  const items = await listOf(source, "resources/templates/list", hasResources);
  return items.flatMap((item) => {
    const uriTemplate = textAt(item, "uriTemplate");
    if (uriTemplate === undefined) return [];
    return [{ server: source.server.name, uriTemplate, name: textAt(item, "name") ?? uriTemplate, ...labels(item) }];
  });
}

/** The prompts a server lists; entries without a name are left out. */
export async function listPromptsOf(source: Source): Promise<CatalogPrompt[]> {
  const items = await listOf(source, "prompts/list", hasPrompts);
  return items.flatMap((item) => {
    const name = textAt(item, "name");
    if (name === undefined) return [];
    const given = Array.isArray(item.arguments) ? item.arguments.filter(isRecord) : [];
    const args = given.flatMap((argument) => {
      const key = textAt(argument, "name");
      const { description } = labels(argument);
      if (key === undefined) return [];
      return [{ name: key, ...(description !== undefined && { description }), required: argument.required === true }];
    });
    const { mimeType: _none, ...shown } = labels(item);
    return [{ server: source.server.name, name, ...shown, arguments: args }];
  });
}

/** Sends one request that reads, and answers its questions. @returns the raw answer, and whether anything was asked */
async function ask(
  context: WireContext,
  wire: Omit<WireRequest, "headers" | "meta" | "signal" | "source" | "method"> & { readonly method: ReadMethod },
  options: ReadOptions,
  who: Pick<EventSource, "prompt" | "uri">,
  stop: AbortSignal,
): Promise<{ final: Record<string, unknown>; asked: boolean }> {
  const { server, elicitation, peers, visits, emit, events, content } = context;
  const { what } = wire;
  const signal = options.signal ? AbortSignal.any([options.signal, stop]) : stop;
  const source: EventSource = Object.freeze({ server: server.name, ...who, callId: context.callId });
  return tracedRead(server, { ...wire, meta: options.meta ?? {} }, content, (meta) => {
    const request: WireRequest = { ...wire, headers: options.headers ?? {}, meta, signal, source };
    return untilFinal<Record<string, unknown>>({
      server: server.name,
      what,
      signal,
      source,
      expectHosts: server.config.expectHosts,
      peers,
      visits,
      send: async (carried) => sendRequest(context, request, await carried()),
      answer: async (questions) => {
        for (const question of Object.values(questions)) emit(events.onElicitation, question, source);
        const suspends = "only a tool call can be suspended; give createClient an elicitation handler";
        return answerByHandler(elicitation, questions, { what, source, signal, suspends });
      },
    });
  });
}

function bad(server: string, what: string, reason: string): ProtocolError {
  const message = `server "${server}" answered ${what} against the protocol: ${reason}`;
  return new ProtocolError(message, { code: "bad_answer", server, maybeExecuted: true });
}

function toBlob(server: string, content: Record<string, unknown>, asked: string): ResourceBlob {
  const text = textAt(content, "text");
  const mimeType = textAt(content, "mimeType");
  const bytes = () => (text === undefined ? Buffer.from(textAt(content, "blob") ?? "", "base64") : Buffer.from(text));
  return Object.freeze({
    server,
    uri: textAt(content, "uri") ?? asked,
    ...(mimeType !== undefined && { mimeType }),
    kind: text === undefined ? ("bytes" as const) : ("text" as const),
    asString: () => text ?? bytes().toString("utf8"),
    // a copy of its own: a Buffer may share memory with others
    asBytes: () => new Uint8Array(bytes()),
  });
}

/**
 * Reads one resource; a server may answer with several contents. What its server allows to be kept is not asked for again
 * by whoever brings the same headers and meta.
 * @param stop ends the reading when the client is closed
 * @throws TenonError, with the address in the message
 */
export async function readResource(
  context: WireContext,
  cache: AnswerCache,
  uri: string,
  options: ReadOptions,
  stop: AbortSignal,
): Promise<ResourceBlob[]> {
  const server = context.server.name;
  const what = `resources/read ${uri}`;
  const { contextFields } = context;
  // what the configuration adds says who asks as well
  const carried = { ...(contextFields && { contextFields }), ...options.meta };
  const identity = identityOf(options.headers ?? {}, carried, await context.server.identify());
  const kept = cache.get(what, identity) as Record<string, unknown> | undefined; // as it was put there below
  // what was kept for a call that takes more is too large for one that takes less
  if (kept && jsonSize(kept, context.maxResultBytes) > context.maxResultBytes) {
    throw tooLarge(server, what, context.maxResultBytes);
  }
  const { final: raw, asked } = kept
    ? { final: kept, asked: false }
    : await ask(context, { method: "resources/read", what, params: { uri } }, options, { uri }, stop);
  const { contents } = raw;
  if (!Array.isArray(contents)) throw bad(server, what, "contents is not a list");
  const blobs = contents.map((content: unknown, index) => {
    if (!isRecord(content)) throw bad(server, what, `contents[${index}] is not an object`);
    if (typeof content.text !== "string" && typeof content.blob !== "string") {
      throw bad(server, what, `contents[${index}] has neither text nor blob`);
    }
    return toBlob(server, content, uri);
  });
  // what depends on an answer is nobody else's
  const stillSame = identity === identityOf(options.headers ?? {}, carried, await context.server.identify());
  if (!kept && !asked && stillSame) cache.set(what, identity, freshnessOf(raw), raw);
  return blobs;
}

/** Runs `work` for every item, a bounded number at the same time; results in order. Nothing is begun after a failure. */
export async function inTurns<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  let failed = false;
  const worker = async () => {
    for (const [index, item] of queue) {
      if (failed) return;
      try {
        results[index] = await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, items.length) }, worker));
  return results;
}

/** Renders a prompt of a server. @throws TenonError */
export async function getPromptOf(
  context: WireContext,
  name: string,
  args: Record<string, string>,
  options: ReadOptions,
  stop: AbortSignal,
): Promise<readonly PromptMessage[]> {
  const server = context.server.name;
  const what = `prompts/get ${name}`;
  const params = { name, arguments: args };
  const wire = { method: "prompts/get", what, params } as const;
  const { final: raw } = await ask(context, wire, options, { prompt: name }, stop);
  if (!Array.isArray(raw.messages)) throw bad(server, what, "messages is not a list");
  return raw.messages.map((message: unknown, index) => {
    const where = `messages[${index}]`;
    if (!isRecord(message)) throw bad(server, what, `${where} is not an object`);
    if (message.role !== "user" && message.role !== "assistant") throw bad(server, what, `${where} has no role`);
    const content = recordAt(message, "content");
    if (typeof content.type !== "string") throw bad(server, what, `${where} has no content`);
    // the type was checked; unknown types stay, as in results
    return { role: message.role, content: content as unknown as PromptMessage["content"] };
  });
}
