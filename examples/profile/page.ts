import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";

/** A page of one's own on this machine, where a person types what no form may ask for. */
export interface Page {
  /** Where the person goes for the question `id`. */
  address(id: string): string;
  close(): Promise<void>;
}

const HTML = `<!doctype html><title>PIN</title>
<form method="post"><label>PIN <input name="pin" type="password" autocomplete="off"></label><button>Save</button></form>`;

/**
 * @param save gets what was typed; what it throws is what the person reads
 */
export async function openPage(save: (id: string, pin: string) => Promise<void>): Promise<Page> {
  const http = createServer(async (request, response) => {
    response.setHeader("content-type", "text/html; charset=utf-8");
    try {
      const id = new URL(request.url ?? "/", "http://127.0.0.1").searchParams.get("id") ?? "";
      if (request.method !== "POST") return response.end(HTML);
      if (Number(request.headers["content-length"] ?? Number.NaN) <= 1_000) {
        await save(id, new URLSearchParams(await text(request)).get("pin") ?? "");
        return response.end("Saved. You may close this page.");
      }
      response.writeHead(413).end("Too much");
    } catch {
      response.writeHead(400).end("This did not work: the link is old, or the PIN is not four digits or more.");
    }
  }).listen(0, "127.0.0.1");
  await once(http, "listening");
  const { port } = http.address() as AddressInfo; // it listens on TCP
  return {
    address: (id) => `http://127.0.0.1:${port}/?id=${encodeURIComponent(id)}`,
    async close() {
      http.close();
      http.closeAllConnections();
    },
  };
}
