import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "@tenon/core";
import type { InteractionResults, Provider } from "oidc-provider";
import { isLoopbackDocument } from "./documents.ts";
import { type Asker, consentPage, errorPage, pagePolicy, signInPage } from "./pages.ts";
import { type AuthServerSettings, STANDARD_SCOPES } from "./settings.ts";

type Details = Awaited<ReturnType<Provider["interactionDetails"]>>;

/** A request that is answered with a page instead of being carried out. */
class Refusal extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const MAX_BODY_BYTES = 16 * 1024;
const USER = /^[\w.@+-]{1,64}$/;
const DENIED: InteractionResults = { error: "access_denied", error_description: "the user said no" };
const PATH = /^\/interaction\/([\w-]{1,64})$/;

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  if (!/^application\/x-www-form-urlencoded\b/i.test(request.headers["content-type"] ?? "")) {
    throw new Refusal(415, "Only a form can be sent here.");
  }
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    size += part.length;
    if (size > MAX_BODY_BYTES) throw new Refusal(413, "The form is too large.");
    parts.push(part);
  }
  return new URLSearchParams(Buffer.concat(parts).toString("utf8"));
}

/** Values of a parameter that may be there once, several times or not at all. */
const list = (value: unknown): string[] => [value].flat().filter((one) => typeof one === "string");

/**
 * The sign-in and the consent page. What is answered counts only for the interaction of the browser's own cookie, with the
 * token that its page held, from a page of this server.
 */
export function createInteractions(
  provider: Provider,
  settings: AuthServerSettings,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  const { users, issuer, autoApprove } = settings;
  const secret = randomBytes(32);
  const tokenFor = ({ uid, prompt }: Details): string =>
    createHmac("sha256", secret).update(`${uid}.${prompt.name}`).digest("base64url");

  function checkOrigin(request: IncomingMessage, details: Details, form: URLSearchParams): void {
    const { origin, "sec-fetch-site": site } = request.headers;
    const given = Buffer.from(form.get("csrf") ?? "");
    const expected = Buffer.from(tokenFor(details));
    const foreign = (origin !== undefined && origin !== issuer) || (site !== undefined && site !== "same-origin");
    if (foreign || given.length !== expected.length || !timingSafeEqual(given, expected)) {
      throw new Refusal(403, "The form was not sent from this server's own page. Begin again in the program.");
    }
  }

  async function detailsOf(request: IncomingMessage, response: ServerResponse): Promise<Details> {
    const ended =
      "This sign-in has ended, or belongs to another browser. Begin again in the program that sent you here.";
    const uid = PATH.exec(new URL(request.url ?? "/", issuer).pathname)?.[1];
    let details: Details;
    try {
      details = await provider.interactionDetails(request, response);
    } catch {
      throw new Refusal(400, ended);
    }
    if (details.uid !== uid) throw new Refusal(400, ended);
    return details;
  }

  async function askerOf({ params }: Details): Promise<Asker> {
    const clientId = String(params.client_id);
    const client = await provider.Client.find(clientId);
    if (!client) throw new Refusal(400, "The program is not known any more. Begin again in it.");
    const configured = settings.clients.some((one) => one.client_id === clientId);
    const document = clientId.startsWith("https://") || isLoopbackDocument(clientId);
    return {
      clientId,
      name: client.clientName ?? clientId,
      redirectUri: String(params.redirect_uri),
      origin: configured ? "configured" : document ? "document" : "registered",
    };
  }

  const resourcesOf = ({ params }: Details): string[] => list(params.resource);
  const askedScopes = ({ params }: Details): string[] => [
    ...new Set(
      String(params.scope ?? "")
        .split(" ")
        .filter(Boolean),
    ),
  ];

  /** A grant of what was approved; what was not is on record as refused, so that it is not asked for again. */
  async function approve(details: Details, approved: readonly string[]): Promise<InteractionResults> {
    const accountId = details.session?.accountId;
    if (accountId === undefined) throw new Refusal(400, "Nobody is signed in. Begin again in the program.");
    const asked = askedScopes(details);
    const yes = asked.filter((scope) => scope === "openid" || approved.includes(scope));
    const no = asked.filter((scope) => !yes.includes(scope));
    if (!yes.some((scope) => !STANDARD_SCOPES.includes(scope))) return DENIED;
    const grant = new provider.Grant({ accountId, clientId: String(details.params.client_id) });
    grant.addOIDCScope(yes.join(" "));
    grant.rejectOIDCScope(no.join(" "));
    for (const resource of resourcesOf(details)) {
      grant.addResourceScope(resource, yes.join(" "));
      grant.rejectResourceScope(resource, no.join(" "));
    }
    return { consent: { grantId: await grant.save() } };
  }

  function signIn(user: string): InteractionResults | undefined {
    const known = users.length === 0 ? USER.test(user) : users.includes(user);
    return known ? { login: { accountId: user } } : undefined;
  }

  function send(response: ServerResponse, status: number, body: string, redirectUri?: string): void {
    response.writeHead(status, {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": pagePolicy(redirectUri),
      "cache-control": "no-store",
    });
    response.end(body);
  }

  async function show(response: ServerResponse, details: Details, problem?: string): Promise<void> {
    const asker = await askerOf(details);
    const csrf = tokenFor(details);
    const hint = details.params.login_hint;
    const body =
      details.prompt.name === "login"
        ? signInPage(asker, {
            csrf,
            users,
            hint: typeof hint === "string" ? hint : "",
            ...(problem !== undefined && { problem }),
          })
        : consentPage(asker, {
            csrf,
            user: details.session?.accountId ?? "",
            resources: resourcesOf(details),
            scopes: askedScopes(details).filter((scope) => scope !== "openid"),
          });
    send(response, problem === undefined ? 200 : 400, body, asker.redirectUri);
  }

  /** What a sent form means; undefined when it has to be shown again. */
  async function answer(details: Details, form: URLSearchParams): Promise<InteractionResults | undefined> {
    if (form.get("decision") === "deny") return DENIED;
    if (details.prompt.name === "login") return signIn(form.get("user") ?? "");
    if (form.get("decision") === "approve") return approve(details, form.getAll("scope"));
    throw new Refusal(400, "The form says neither yes nor no.");
  }

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const details = await detailsOf(request, response);
    let result: InteractionResults | undefined;
    if (autoApprove !== undefined) {
      result = details.prompt.name === "login" ? signIn(autoApprove) : await approve(details, askedScopes(details));
    } else if (request.method === "GET") {
      return show(response, details);
    } else if (request.method === "POST") {
      const form = await readForm(request);
      checkOrigin(request, details, form);
      result = await answer(details, form);
    } else throw new Refusal(405, "This page is read, or its form is sent.");
    if (!result) return show(response, details, "Nobody of that name can sign in here.");
    await provider.interactionFinished(request, response, result);
  }

  return async (request, response) => {
    try {
      await handle(request, response);
    } catch (error) {
      const known = error instanceof Refusal;
      settings.log(`interaction refused: ${messageOf(error)}`);
      if (response.headersSent) response.destroy();
      else
        send(
          response,
          known ? error.status : 500,
          errorPage("This cannot go on", known ? error.message : "Unexpected error."),
        );
    }
  };
}
