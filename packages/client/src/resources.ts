import type { ContentBlock } from "@modelcontextprotocol/client";
import { isRecord, ProtocolError } from "@tenon/core";
import type { Connection } from "./connection/connection.ts";
import type { Server } from "./connection/server.ts";
import { fetchAll, recordAt, textAt } from "./pages.ts";
import type { CatalogPrompt, CatalogResource, PromptMessage, ResourceBlob } from "./types.ts";

const TIMEOUT_MS = 60_000;

function labels(item: Record<string, unknown>): { title?: string; description?: string } {
  const title = textAt(item, "title");
  const description = textAt(item, "description");
  return { ...(title !== undefined && { title }), ...(description !== undefined && { description }) };
}

async function listOf(
  server: Server,
  method: "resources/list" | "prompts/list",
  offered: (connection: Connection) => boolean,
): Promise<Record<string, unknown>[]> {
  const listing = await server.use(
    method,
    async (connection) => (offered(connection) ? await fetchAll(connection, method) : { items: [] }),
    true,
  );
  return listing.items.filter(isRecord);
}

/** The resources a server lists; entries without an address are left out. */
export async function listResourcesOf(server: Server): Promise<CatalogResource[]> {
  const items = await listOf(
    server,
    "resources/list",
    ({ sdk }) => sdk.getServerCapabilities()?.resources !== undefined,
  );
  return items.flatMap((item) => {
    const uri = textAt(item, "uri");
    if (uri === undefined) return [];
    const mimeType = textAt(item, "mimeType");
    const name = textAt(item, "name") ?? uri;
    return [{ server: server.name, uri, name, ...labels(item), ...(mimeType !== undefined && { mimeType }) }];
  });
}

/** The prompts a server lists; entries without a name are left out. */
export async function listPromptsOf(server: Server): Promise<CatalogPrompt[]> {
  const items = await listOf(server, "prompts/list", ({ sdk }) => sdk.getServerCapabilities()?.prompts !== undefined);
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
    return [{ server: server.name, name, ...labels(item), arguments: args }];
  });
}

function toBlob(server: string, content: Record<string, unknown>, asked: string): ResourceBlob {
  const text = textAt(content, "text");
  const mimeType = textAt(content, "mimeType");
  const bytes = () => (text === undefined ? Buffer.from(textAt(content, "blob") ?? "", "base64") : Buffer.from(text));
  return Object.freeze({
    server,
    uri: textAt(content, "uri") ?? asked,
    ...(mimeType !== undefined && { mimeType }),
    asString: () => text ?? bytes().toString("utf8"),
    // a copy of its own: a Buffer may share memory with others
    asBytes: () => new Uint8Array(bytes()),
  });
}

/**
 * Reads one resource; a server may answer with several contents.
 * @throws TenonError, with the address in the message
 */
export async function readResource(server: Server, uri: string): Promise<ResourceBlob[]> {
  return server.use(
    `resources/read ${uri}`,
    async (connection) => {
      const result = await connection.exchange({}, () => connection.sdk.readResource({ uri }, { timeout: TIMEOUT_MS }));
      return result.contents.map((content) => toBlob(server.name, content, uri));
    },
    true,
  );
}

/** Renders a prompt of a server. @throws TenonError */
export async function getPromptOf(
  server: Server,
  name: string,
  args: Record<string, string>,
): Promise<readonly PromptMessage[]> {
  return server.use(
    `prompts/get ${name}`,
    async (connection) => {
      const result = await connection.exchange({}, () =>
        connection.sdk.getPrompt({ name, arguments: args }, { timeout: TIMEOUT_MS }),
      );
      return result.messages.map((message) => {
        const content: ContentBlock = message.content;
        if (!isRecord(recordAt(message, "content"))) {
          throw new ProtocolError(`prompt "${name}" of server "${server.name}" has a message without content`, {
            code: "bad_answer",
            server: server.name,
          });
        }
        return { role: message.role, content };
      });
    },
    true,
  );
}
