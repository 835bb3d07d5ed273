import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parseUrl } from "@tenon/core/internal";
import { sameText } from "./same-text.ts";

/** Answers to other sign-ins that get a page to read; the connections of more are cut. */
const MAX_STRANGERS = 100;

/** Waits for a browser to come back to this machine (RFC 8252 section 7.3). */
export interface RedirectListener {
  /** The address to name in the authorization request. */
  readonly redirectUrl: string;
  /**
   * The parameters of the first request that answers the sign-in which was begun with `state`. What else comes is somebody else's:
   * any page can send a browser here.
   */
  answer(state: string): Promise<URLSearchParams>;
  /** Answers to other sign-ins that were turned away. */
  readonly strangers: number;
  close(): void;
}

const page = (title: string, text: string) => `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>${title}</title>
<style>body{font:16px/1.5 system-ui,sans-serif;margin:20vh auto;max-width:28rem;padding:0 1rem}</style>
<h1>${title}</h1><p>${text}</p></html>
`;

/** The pages are fixed: nothing of the request is repeated in them. */
const PAGES = {
  done: page("You can close this window", "The program you came from goes on by itself."),
  failed: page("The sign-in was not completed", "The program you came from says why. You can close this window."),
  other: page("Nothing here", "This address waits for a sign-in only."),
  foreign: page("This is another sign-in", "Nothing was taken from it. Sign in from the address the program shows."),
} as const;

function reply(res: ServerResponse, status: number, html: string): void {
  res.writeHead(status, {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    connection: "close",
  });
  res.end(html);
}

/**
 * Listens on this machine only, until the answer came to the redirect address or `close` is called.
 * @param wanted the address to listen at; without a port, a free one is taken
 * @throws the system's error when the port is taken
 */
export async function listenForRedirect(wanted: URL): Promise<RedirectListener> {
  const host = wanted.hostname === "[::1]" ? "::1" : "127.0.0.1";
  let settle: (params: URLSearchParams) => void = () => {};
  const answer = new Promise<URLSearchParams>((resolve) => {
    settle = resolve;
  });
  let expected: string | undefined;
  let strangers = 0;
  let hosts: readonly string[] = [];
  let answered = false;
  const server = createServer(
    { maxHeaderSize: 16 * 1024, requestTimeout: 5_000, headersTimeout: 5_000 },
    (req, res) => {
      req.resume();
      const url = parseUrl(req.url ?? "", `http://${hosts[0]}`);
      const right = url?.pathname === wanted.pathname && hosts.includes(req.headers.host ?? "");
      if (req.method !== "GET" || !url || !right || answered) return reply(res, right ? 405 : 404, PAGES.other);
      const own = expected !== undefined && sameText(url.searchParams.get("state") ?? "", expected);
      if (!own) {
        strangers += 1;
        if (strangers > MAX_STRANGERS) req.socket.destroy();
        else reply(res, 400, PAGES.foreign);
        return;
      }
      answered = true;
      reply(res, 200, url.searchParams.has("code") ? PAGES.done : PAGES.failed);
      res.on("close", () => close());
      settle(url.searchParams);
    },
  );
  server.maxConnections = 16;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  server.listen({ host, port: Number(wanted.port || 0), exclusive: true });
  await once(server, "listening");
  const { port } = server.address() as AddressInfo; // it listens on a port
  const address = new URL(wanted);
  address.port = String(port);
  hosts = [address.host, `127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`];
  return {
    redirectUrl: address.href,
    answer(state) {
      expected = state;
      return answer;
    },
    get strangers() {
      return strangers;
    },
    close,
  };
}
