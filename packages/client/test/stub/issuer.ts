// A scriptable authorization server and what protects an MCP stub with its tokens: plain HTTP, everything it does can be replaced.
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { HttpBehavior } from "./http.ts";

type Json = Record<string, unknown>;

/** What an issuer does differently. */
export interface IssuerBehavior {
  /** Changes its metadata. */
  metadata?: (metadata: Json) => Json;
  /** Changes the parameters the browser is sent back with; undefined takes one away. */
  redirect?: (params: Record<string, string | undefined>) => Record<string, string | undefined>;
  /** Changes a token answer. */
  token?: (answer: Json, params: URLSearchParams) => Json;
  /** Answers a token request itself; `undefined` leaves it to the issuer. */
  onToken?: (params: URLSearchParams, req: IncomingMessage) => { status: number; body: Json } | undefined;
  /** Sees every request first; `true` says that it answered. */
  onHttp?: (req: IncomingMessage, res: ServerResponse) => boolean | undefined;
  /** The scopes that are given of those asked for. */
  grants?: (scope: string) => string;
  /** Seconds a token lives. Default 3,600. */
  lifetime?: number;
  /** Milliseconds a token answer takes. */
  tokenMs?: number;
  /** Whether a refresh token is used up by its use. Default true. */
  rotates?: boolean;
}

export interface Issuer {
  readonly url: string;
  /** The parameters of every request, by endpoint. */
  readonly authorizations: Record<string, string>[];
  readonly tokenRequests: Record<string, string>[];
  readonly registrations: Json[];
  /** Paths asked for, in order. */
  readonly paths: string[];
  /** Scopes of the tokens that are good. */
  readonly tokens: Map<string, string>;
  /** Scopes of the refresh tokens that are good, the newest last. */
  readonly refreshTokens: Map<string, string>;
  /** Refresh tokens that were used a second time. */
  readonly reused: string[];
  /** Ends all access tokens. */
  expireAll(): void;
  /** A browser whose person consents at once: follows an authorization to where it leads back. */
  browse(url: string): Promise<URL>;
  close(): Promise<void>;
}

const secret = () => randomBytes(12).toString("base64url");

async function bodyOf(req: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

/** Starts an authorization server on 127.0.0.1. */
export async function startIssuer(behavior: IssuerBehavior = {}): Promise<Issuer> {
  const authorizations: Record<string, string>[] = [];
  const tokenRequests: Record<string, string>[] = [];
  const registrations: Json[] = [];
  const paths: string[] = [];
  const tokens = new Map<string, string>();
  const codes = new Map<string, Record<string, string>>();
  const refreshTokens = new Map<string, string>();
  const reused: string[] = [];
  let url = "";

  const json = (res: ServerResponse, status: number, body: Json) => {
    res.writeHead(status, { "content-type": "application/json" });
    res.end(JSON.stringify(body));
  };
  const mint = (asked: string, refreshable: boolean): Json => {
    const scope = behavior.grants?.(asked) ?? asked;
    const access = `at-${secret()}`;
    tokens.set(access, scope);
    const refresh = `rt-${secret()}`;
    if (refreshable) refreshTokens.set(refresh, scope);
    const more = refreshable ? { refresh_token: refresh } : {};
    return {
      access_token: access,
      token_type: "Bearer",
      expires_in: behavior.lifetime ?? 3_600,
      ...(scope && { scope }),
      ...more,
    };
  };
  const grant = (params: URLSearchParams): { status: number; body: Json } => {
    const refuse = (error: string) => ({ status: 400, body: { error, error_description: `no: ${error}` } });
    const type = params.get("grant_type");
    if (type === "client_credentials") return { status: 200, body: mint(params.get("scope") ?? "", false) };
    if (type === "refresh_token") {
      const token = params.get("refresh_token") ?? "";
      const scope = refreshTokens.get(token);
      if (scope === undefined) {
        reused.push(token);
        return refuse("invalid_grant");
      }
      if (behavior.rotates !== false) refreshTokens.delete(token);
      return { status: 200, body: mint(scope, true) };
    }
    const begun = codes.get(params.get("code") ?? "");
    codes.delete(params.get("code") ?? "");
    if (!begun) return refuse("invalid_grant");
    const verifier = createHash("sha256")
      .update(params.get("code_verifier") ?? "")
      .digest("base64url");
    const same = verifier === begun.code_challenge && params.get("redirect_uri") === begun.redirect_uri;
    return same ? { status: 200, body: mint(begun.scope ?? "", true) } : refuse("invalid_grant");
  };

  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const asked = new URL(req.url ?? "", url);
    paths.push(asked.pathname);
    if (behavior.onHttp?.(req, res)) return;
    const body = await bodyOf(req);
    switch (asked.pathname) {
      case "/.well-known/oauth-authorization-server": {
        const metadata = {
          issuer: url,
          authorization_endpoint: `${url}/authorize`,
          token_endpoint: `${url}/token`,
          registration_endpoint: `${url}/register`,
          response_types_supported: ["code"],
          code_challenge_methods_supported: ["S256"],
          token_endpoint_auth_methods_supported: ["none", "client_secret_basic", "client_secret_post"],
          authorization_response_iss_parameter_supported: true,
        };
        return json(res, 200, behavior.metadata?.(metadata) ?? metadata);
      }
      case "/register": {
        const wanted: Json = JSON.parse(body);
        registrations.push(wanted);
        return json(res, 201, { ...wanted, client_id: `client-${registrations.length}` });
      }
      case "/authorize": {
        const params = Object.fromEntries(asked.searchParams);
        authorizations.push(params);
        const code = `code-${secret()}`;
        codes.set(code, params);
        const back = new URL(params.redirect_uri ?? "");
        const given = { code, state: params.state, iss: url };
        for (const [key, value] of Object.entries(behavior.redirect?.(given) ?? given)) {
          if (value !== undefined) back.searchParams.set(key, value);
        }
        res.writeHead(302, { location: back.href }).end();
        return;
      }
      case "/token": {
        const params = new URLSearchParams(body);
        const { authorization } = req.headers;
        tokenRequests.push({ ...Object.fromEntries(params), ...(authorization && { authorization }) });
        if (behavior.tokenMs) await new Promise((resolve) => setTimeout(resolve, behavior.tokenMs));
        const { status, body: answer } = behavior.onToken?.(params, req) ?? grant(params);
        return json(res, status, status === 200 ? (behavior.token?.(answer, params) ?? answer) : answer);
      }
      default:
        res.writeHead(404).end();
    }
  };
  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // it listens on a port

  return {
    get url() {
      return url;
    },
    authorizations,
    tokenRequests,
    registrations,
    paths,
    tokens,
    refreshTokens,
    reused,
    expireAll: () => tokens.clear(),
    browse: async (page) => {
      const { headers } = await fetch(page, { redirect: "manual" });
      return new URL(headers.get("location") ?? "about:blank");
    },
    close: async () => {
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}

/** What protects a stub. */
export interface Protection {
  /** Changes the metadata of the resource. */
  resource?: (metadata: Json) => Json;
  /** Scopes a method needs. */
  needs?: (method: string) => string | undefined;
  /** What 401 and 403 say besides. */
  challenge?: string;
}

/** `onHttp` of a stub that wants a token of an issuer: serves its metadata and checks what requests bring. */
export function protectedBy(
  issuer: () => Pick<Issuer, "url" | "tokens">,
  { resource, needs, challenge }: Protection = {},
): NonNullable<HttpBehavior["onHttp"]> {
  return (req, res, body) => {
    const origin = `http://${req.headers.host}`;
    if (req.url === "/.well-known/oauth-protected-resource/mcp") {
      const metadata = { resource: `${origin}/mcp`, authorization_servers: [issuer().url] };
      res.writeHead(200, { "content-type": "application/json" });
      res.end(JSON.stringify(resource?.(metadata) ?? metadata));
      return true;
    }
    if (req.url !== "/mcp") {
      res.writeHead(404).end();
      return true;
    }
    const where = challenge ?? `resource_metadata="${origin}/.well-known/oauth-protected-resource/mcp"`;
    const token = /^(?:Bearer|DPoP) (.+)$/.exec(req.headers.authorization ?? "")?.[1] ?? "";
    const scopes = issuer().tokens.get(token);
    if (scopes === undefined) {
      res.writeHead(401, { "www-authenticate": `Bearer ${where}` }).end();
      return true;
    }
    const method = body === "" ? "" : String(JSON.parse(body).method);
    const wanted = needs?.(method);
    if (wanted === undefined || scopes.split(" ").includes(wanted)) return undefined;
    const lacking = `error="insufficient_scope", scope="${wanted}"`;
    res.writeHead(403, { "www-authenticate": `Bearer ${lacking}, ${where}` }).end();
    return true;
  };
}
