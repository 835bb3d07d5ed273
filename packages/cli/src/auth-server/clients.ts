import { readFileSync, statSync } from "node:fs";
import { isRecord, messageOf } from "@tenon/core";
import type { ClientMetadata } from "oidc-provider";
import { usageError } from "../failure.ts";

const MAX_FILE_BYTES = 1024 * 1024;
const ID = /^[\w.-]{1,200}$/;

function readClients(path: string): ClientMetadata[] {
  let content: unknown;
  try {
    if (statSync(path).size > MAX_FILE_BYTES) throw new Error(`it is larger than ${MAX_FILE_BYTES} bytes`);
    content = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    const why = error instanceof SyntaxError ? "it is not JSON" : messageOf(error);
    throw usageError(`the clients in ${path} cannot be read: ${why}`, "give a JSON file with the metadata of RFC 7591");
  }
  return [content].flat().map((client: unknown) => {
    if (isRecord(client) && typeof client.client_id === "string") return { ...client, client_id: client.client_id };
    throw usageError(`a client in ${path} has no client_id`, "give each client a client_id");
  });
}

function parse(spec: string): ClientMetadata[] {
  if (spec.endsWith(".json")) return readClients(spec);
  const [, publicId, uri] = /^([^=:]+)=(.+)$/.exec(spec) ?? [];
  if (publicId !== undefined && uri !== undefined && ID.test(publicId)) {
    return [
      {
        client_id: publicId,
        redirect_uris: [uri],
        grant_types: ["authorization_code", "refresh_token"],
        token_endpoint_auth_method: "none",
      },
    ];
  }
  const [, id, secret] = /^([^=:]+):(.+)$/.exec(spec) ?? [];
  if (id !== undefined && secret !== undefined && ID.test(id)) {
    return [
      {
        client_id: id,
        client_secret: secret,
        redirect_uris: [],
        response_types: [],
        grant_types: ["client_credentials"],
        token_endpoint_auth_method: "client_secret_basic",
      },
    ];
  }
  // the value is not repeated: it may hold a secret
  throw usageError("a --client is not understood", "write id=redirect-uri, id:secret, or the path of a .json file");
}

/**
 * The clients of `--client`: `id=redirect-uri` is a public one (given twice, it has both addresses), `id:secret` one for client
 * credentials, a `.json` file holds metadata (RFC 7591) of one client or a list.
 * @throws CommandError `code: "usage"`
 */
export function parseClients(specs: readonly string[]): ClientMetadata[] {
  const byId = new Map<string, ClientMetadata>();
  for (const client of specs.flatMap(parse)) {
    const before = byId.get(client.client_id);
    const both = [before, client].every((one) => one?.token_endpoint_auth_method === "none");
    if (before && !both) {
      throw usageError(`the client ${client.client_id} is given twice`, "give each client another id");
    }
    const uris = [...(before?.redirect_uris ?? []), ...(client.redirect_uris ?? [])];
    byId.set(client.client_id, before ? { ...before, redirect_uris: uris } : client);
  }
  return [...byId.values()];
}
