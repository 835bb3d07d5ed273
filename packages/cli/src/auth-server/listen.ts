import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { isLoopback } from "@tenon/core";
import { urlHost } from "@tenon/core/internal";
import { usageError } from "../failure.ts";
import { createInteractions } from "./interactions.ts";
import { createProvider } from "./provider.ts";
import type { AuthServerSettings } from "./settings.ts";

const REQUEST_MS = 30_000;
/** How long running requests may take to end when the server closes. */
const CLOSE_MS = 1_000;

export interface RunningAuthServer {
  readonly issuer: string;
  close(): Promise<void>;
}

/** Where to listen, and everything else but the issuer, which may depend on the port that is got. */
export interface ListenOptions extends Omit<AuthServerSettings, "issuer" | "loopbackDocuments"> {
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly issuer?: string;
}

const originOf = (host: string, port: number): string => `http://${urlHost(host)}:${port}`;

/**
 * Each page is for its own tab and its own address: in no frame, and under no other name, since a page of another site could
 * otherwise have its name resolved to this computer and read what is here (DNS rebinding).
 */
function guarded(
  issuer: string,
  next: (request: IncomingMessage, response: ServerResponse) => void,
): (request: IncomingMessage, response: ServerResponse) => void {
  const { host } = new URL(issuer);
  return (request, response) => {
    response.setHeader("x-frame-options", "DENY");
    response.setHeader("x-content-type-options", "nosniff");
    response.setHeader("referrer-policy", "same-origin"); // without one, browsers send no origin with a form
    if (request.headers.host === host) return next(request, response);
    response.writeHead(421, { "content-type": "text/plain; charset=utf-8" });
    response.end(`This authorization server answers only as ${issuer}\n`);
  };
}

async function listening(server: Server, host: string, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, host, resolve);
  });
  return (server.address() as AddressInfo).port; // it listens on a port, not on a socket file
}

/**
 * Runs the authorization server.
 * @throws CommandError `code: "usage"` when a client is not valid or the issuer cannot be known
 */
export async function listenAuthServer(options: ListenOptions): Promise<RunningAuthServer> {
  const { host, port, ...rest } = options;
  if (options.issuer === undefined && (host === "0.0.0.0" || host === "::")) {
    throw usageError(`${host} is every address of this computer, and an issuer has one`, "name it: --issuer http://…");
  }
  const server = createServer({ requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS });
  const bound = await listening(server, host, port);
  const close = async (): Promise<void> => {
    const closed = new Promise((resolve) => server.close(resolve));
    server.closeIdleConnections();
    const timer = setTimeout(() => server.closeAllConnections(), CLOSE_MS);
    await closed;
    clearTimeout(timer);
  };
  try {
    const issuer = options.issuer ?? originOf(host, bound);
    const settings = { ...rest, issuer, loopbackDocuments: isLoopback(host) };
    const provider = await createProvider(settings).catch((cause) => {
      // what `oidc-provider` says of a client that is not valid
      if (cause?.name !== "InvalidClientMetadata") throw cause;
      throw usageError(`a client is not valid: ${cause.error_description}`, "correct --client");
    });
    const interact = createInteractions(provider, settings);
    const oauth = provider.callback();
    server.on(
      "request",
      guarded(issuer, (request, response) => {
        void (request.url?.startsWith("/interaction/") ? interact(request, response) : oauth(request, response));
      }),
    );
    return { issuer, close };
  } catch (error) {
    await close();
    throw error;
  }
}
