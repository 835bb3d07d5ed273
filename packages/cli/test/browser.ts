import { createHash, randomBytes } from "node:crypto";

interface Cookie {
  readonly path: string;
  readonly value: string;
}

/** A response as a test looks at it. */
export interface Page {
  readonly status: number;
  readonly url: string;
  readonly headers: Headers;
  readonly text: string;
  /** Where a redirect leads that was not followed. */
  readonly location?: string;
}

/** A browser without a screen: keeps cookies by path, follows redirects on the server's own origin, sends forms. */
export class Browser {
  readonly #cookies = new Map<string, Cookie>();

  /** The cookies it sends to a path. */
  cookieHeader(path: string): string {
    return [...this.#cookies]
      .filter(([, cookie]) => path === cookie.path || path.startsWith(cookie.path.replace(/\/?$/, "/")))
      .map(([key, cookie]) => `${key.split("|")[0]}=${cookie.value}`)
      .join("; ");
  }

  #remember(response: Response): void {
    for (const line of response.headers.getSetCookie()) {
      const [pair = "", ...attributes] = line.split(/;\s*/);
      const [name = "", value = ""] = [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)];
      const path = attributes.find((one) => /^path=/i.test(one))?.slice(5) ?? "/";
      if (value === "") this.#cookies.delete(`${name}|${path}`);
      else this.#cookies.set(`${name}|${path}`, { path, value });
    }
  }

  /** Loads a page; stops at a redirect that leaves the origin. */
  async open(url: string, init: RequestInit = {}): Promise<Page> {
    let next = url;
    let options = init;
    for (let hops = 0; hops < 10; hops += 1) {
      const headers = new Headers(options.headers);
      const cookie = this.cookieHeader(new URL(next).pathname);
      if (cookie) headers.set("cookie", cookie);
      headers.set("accept", "text/html");
      const response = await fetch(next, { ...options, headers, redirect: "manual" });
      this.#remember(response);
      const location = response.headers.get("location");
      const text = await response.text();
      const page = { status: response.status, url: next, headers: response.headers, text };
      if (location === null) return page;
      const target = URL.canParse(location, next) ? new URL(location, next) : undefined;
      if (target?.origin !== new URL(next).origin) return { ...page, location };
      next = target.href;
      options = {};
    }
    throw new Error(`too many redirects from ${url}`);
  }

  /** Sends a page's form with its hidden fields and these values. */
  async submit(
    page: Page,
    values: Record<string, string | string[]>,
    headers: Record<string, string> = {},
  ): Promise<Page> {
    const form = new URLSearchParams();
    const [, csrf] = /name="csrf" value="([^"]+)"/.exec(page.text) ?? [];
    if (csrf) form.set("csrf", csrf);
    for (const [name, value] of Object.entries(values)) for (const one of [value].flat()) form.append(name, one);
    return this.open(page.url, {
      method: "POST",
      body: form,
      headers: { origin: new URL(page.url).origin, "sec-fetch-site": "same-origin", ...headers },
    });
  }
}

/** A PKCE pair (RFC 7636). */
export function pkce(): { verifier: string; challenge: string } {
  const verifier = randomBytes(32).toString("base64url");
  return { verifier, challenge: createHash("sha256").update(verifier).digest("base64url") };
}

export interface Client {
  readonly client_id: string;
  readonly redirect_uri: string;
}

/** Address of an authorization request; `undefined` leaves a parameter out. */
export function authorizeUrl(
  issuer: string,
  client: Client,
  challenge: string,
  more: Record<string, string | undefined> = {},
): string {
  const url = new URL(`${issuer}/authorize`);
  const parameters = {
    response_type: "code",
    code_challenge: challenge,
    code_challenge_method: "S256",
    state: "s-1",
    ...client,
    ...more,
  };
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) url.searchParams.set(name, value);
  return url.href;
}

/** What a person does at the pages: picks a name, leaves these scopes ticked (default: all), approves. */
export interface Choice {
  readonly user?: string;
  readonly scope?: readonly string[];
}

/** Signs in and approves, as a person would; the result is the consent page, and the address the browser is then sent to. */
export async function consent(
  browser: Browser,
  url: string,
  { user = "alice", scope }: Choice = {},
): Promise<{ page: Page; offered: string[]; location: string }> {
  let page = await browser.open(url);
  if (page.text.includes("Sign in (development)")) page = await browser.submit(page, { user });
  const offered = [...page.text.matchAll(/name="scope" value="([^"]+)"/g)].map(([, one = ""]) => one);
  // refused before anybody was asked
  if (page.location !== undefined) return { page, offered, location: page.location };
  const done = await browser.submit(page, { decision: "approve", scope: [...(scope ?? offered)] });
  if (done.location === undefined) throw new Error(`no redirect: ${done.status} ${done.text}`);
  return { page, offered, location: done.location };
}

/** Signs in and approves; the result is what the client gets in its redirect. */
export async function authorize(browser: Browser, url: string, choice: Choice = {}): Promise<URLSearchParams> {
  return new URL((await consent(browser, url, choice)).location).searchParams;
}

/** A token request; `headers` for clients that authenticate themselves. */
export async function tokenRequest(
  issuer: string,
  parameters: Record<string, string>,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, string> }> {
  const response = await fetch(`${issuer}/token`, { method: "POST", body: new URLSearchParams(parameters), headers });
  return { status: response.status, body: (await response.json()) as Record<string, string> };
}

/** The whole flow: a code, and the tokens for it. */
export async function signIn(
  issuer: string,
  client: Client,
  more: Record<string, string | undefined> = {},
  choice: { user?: string; scope?: string[] } = {},
): Promise<{ code: string; verifier: string; status: number; body: Record<string, string> }> {
  const { verifier, challenge } = pkce();
  const answer = await authorize(new Browser(), authorizeUrl(issuer, client, challenge, more), choice);
  const code = answer.get("code") ?? "";
  const parameters = { grant_type: "authorization_code", code, code_verifier: verifier, ...client };
  return { code, verifier, ...(await tokenRequest(issuer, parameters)) };
}
