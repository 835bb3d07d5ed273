import { isRecord, keepNewest, messageOf } from "@tenon/core";
import { readBounded } from "@tenon/core/internal";
import type { ClientMetadata } from "oidc-provider";

const LOOPBACK = /^http:\/\/(?:127\.0\.0\.1|localhost|\[::1\])(?::\d{1,5})?(\/[^?#\s\\]*)$/;
const FETCH_MS = 2_500;
const MAX_BYTES = 5 * 1024;
/** Seconds a document is kept: its server may have ended when the client asks for its token. */
const KEPT_MS = 60_000;
const MAX_KEPT = 100;
/** Methods with a secret that the client and we would share: a public document cannot hold one. */
const SHARED_SECRET = /^client_secret/;

/** Whether a client id is the address of a metadata document on this computer. */
export function isLoopbackDocument(id: string): boolean {
  const path = LOOPBACK.exec(id)?.[1];
  if (path === undefined || path === "/") return false;
  return !path.split("/").some((segment) => /^(?:\.|%2e){1,2}$/i.test(segment));
}

async function fetchDocument(id: string): Promise<ClientMetadata> {
  const response = await fetch(id, {
    headers: { accept: "application/json" },
    redirect: "manual",
    signal: AbortSignal.timeout(FETCH_MS),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`it answers ${response.status}; expected 200 without a redirect`);
  }
  const text = await readBounded(response.body ?? [], MAX_BYTES);
  if (text === undefined) throw new Error(`it is larger than ${MAX_BYTES} bytes`);
  const document: unknown = JSON.parse(text);
  if (!isRecord(document)) throw new Error("it is no JSON object");
  if (document.client_id !== id) throw new Error("its client_id is not its own address");
  if (SHARED_SECRET.test(String(document.token_endpoint_auth_method)) || "client_secret" in document) {
    throw new Error("it holds or wants a shared secret");
  }
  // a client without a secret, unless the document says how it proves itself
  return { token_endpoint_auth_method: "none", ...document, client_id: id };
}

/**
 * Client ID metadata documents of programs under development: `http://127.0.0.1:3000/client.json`. `oidc-provider` reads
 * documents at https addresses only, and none inside a private network; this is for those on the same computer.
 * @param log is told why a document was refused
 */
export function loopbackDocuments(log: (line: string) => void): (id: string) => Promise<ClientMetadata | undefined> {
  const kept = new Map<string, { until: number; document: ClientMetadata }>();
  return async (id) => {
    if (!isLoopbackDocument(id)) return undefined;
    const before = kept.get(id);
    if (before && before.until > Date.now()) return before.document;
    try {
      const document = await fetchDocument(id);
      keepNewest(kept, id, { until: Date.now() + KEPT_MS, document }, MAX_KEPT);
      return document;
    } catch (error) {
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      log(`client document ${id} is refused: ${messageOf(cause)}`);
      return undefined;
    }
  };
}
