import { createHash } from "node:crypto";
import { isLoopback } from "@tenon/core";
import { visibleText } from "@tenon/core/internal";

/** HTML that may be sent as it is: made by `html` only. */
interface Html {
  readonly html: string;
}

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const MAX_SHOWN = 200;

/** Text of others: hidden characters written out, cut where it is long, nothing in it is markup. */
function escaped(text: string): string {
  const shown = visibleText(text).replaceAll("\n", " ");
  const cut = shown.length > MAX_SHOWN ? `${shown.slice(0, MAX_SHOWN)}…` : shown;
  return cut.replaceAll(/[&<>"']/g, (char) => ESCAPES[char] ?? "");
}

type Part = string | Html | readonly Html[];

/** HTML from a template; every value that is not HTML itself is escaped. */
function html(texts: TemplateStringsArray, ...parts: readonly Part[]): Html {
  const fill = (part: Part): string =>
    typeof part === "string"
      ? escaped(part)
      : [part]
          .flat()
          .map((one) => one.html)
          .join("");
  return { html: texts.map((text, at) => text + (at < parts.length ? fill(parts[at] ?? "") : "")).join("") };
}

const STYLE = `body{font:16px/1.5 system-ui,sans-serif;max-width:34rem;margin:3rem auto;padding:0 1rem;color:#1c1c1c;background:#fff}
h1{font-size:1.4rem}dt{font-weight:600;margin-top:.6rem}dd{margin:0;overflow-wrap:anywhere}
fieldset{border:1px solid #bbb;margin:1rem 0}label{display:block;margin:.2rem 0}
button,input[name=user]{font:inherit;padding:.4rem .9rem;margin:.3rem .5rem .3rem 0}
.note{border-left:4px solid #b58900;padding:.2rem .8rem;background:#fdf6e3}`;
const STYLE_HASH = `'sha256-${createHash("sha256").update(STYLE).digest("base64")}'`;

/** A whole page. */
function page(title: string, body: Html): string {
  return html`<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>${title}</title><style>${{ html: STYLE }}</style></head><body><h1>${title}</h1>${body}
<p><small>Tenon's authorization server for development. It checks no passwords; never use it with real data.</small></p>
</body></html>`.html;
}

/**
 * The policy of a page: no script, no frame, nothing loaded. A form's answer may lead on to the client, and browsers hold that
 * against `form-action` too, so the client's place is in it.
 */
export function pagePolicy(redirectUri?: string): string {
  const target = redirectUri === undefined ? [] : [formTarget(redirectUri)];
  return `default-src 'none'; style-src ${STYLE_HASH}; base-uri 'none'; frame-ancestors 'none'; form-action ${["'self'", ...target].join(" ")}`;
}

/** Origin of a web address, scheme of any other; whatever could end the directive is left out. */
function formTarget(redirectUri: string): string {
  const { protocol, host } = new URL(redirectUri);
  const web = /^https?:$/.test(protocol);
  return web && /^[\w.:[\]-]+$/.test(host) ? `${protocol}//${host}` : protocol;
}

/** What both pages of an interaction know about who asks. */
export interface Asker {
  readonly clientId: string;
  readonly name: string;
  readonly redirectUri: string;
  /** How the client came to be known. */
  readonly origin: "configured" | "document" | "registered";
}

const hostOf = (address: string): string => {
  const { protocol, host } = new URL(address);
  return host === "" ? protocol : host;
};

function about({ clientId, name, redirectUri, origin }: Asker): Html {
  const known = {
    configured: html`set up when this server was started`,
    document: html`described by a document at <strong>${URL.canParse(clientId) ? hostOf(clientId) : clientId}</strong>`,
    registered: html`registered by itself; <strong>nobody checked its name</strong>`,
  }[origin];
  const loopback = isLoopback(new URL(redirectUri).hostname);
  return html`<dl><dt>Program</dt><dd>${name}</dd><dt>Its id</dt><dd><code>${clientId}</code>, ${known}</dd>
<dt>You are sent back to</dt><dd><strong>${hostOf(redirectUri)}</strong> <code>${redirectUri}</code>${
    loopback ? html`<br>That is a program on this computer; any program here may claim to be this one.` : html``
  }</dd></dl>`;
}

const hidden = (csrf: string): Html => html`<input type="hidden" name="csrf" value="${csrf}">`;
const DENY = html`<button name="decision" value="deny" formnovalidate>Deny</button>`;

/** The sign-in page: a name is picked, or typed where any name will do. */
export function signInPage(
  asker: Asker,
  given: { csrf: string; users: readonly string[]; hint: string; problem?: string },
): string {
  const { csrf, users, hint, problem } = given;
  const who =
    users.length > 0
      ? users.map((user) => html`<button name="user" value="${user}">${user}</button>`)
      : html`<label>Name <input name="user" value="${hint}" maxlength="64" required autofocus autocomplete="off"></label>
<button>Sign in</button>`;
  return page(
    "Sign in (development)",
    html`<p class="note">No password is asked: whoever sees this page can be anyone.</p>
${problem === undefined ? html`` : html`<p role="alert">${problem}</p>`}${about(asker)}
<form method="post"><p>${who}</p>${hidden(csrf)}</form><form method="post">${hidden(csrf)}${DENY}</form>`,
  );
}

/** The consent page: who asks, where it leads, for which server, and for what. */
export function consentPage(
  asker: Asker,
  given: { csrf: string; user: string; resources: readonly string[]; scopes: readonly string[] },
): string {
  const { csrf, user, resources, scopes } = given;
  return page(
    "Allow access?",
    html`<p>Signed in as <strong>${user}</strong>.</p>${about(asker)}
<dl><dt>For the server</dt><dd>${resources.map((one) => html`<code>${one}</code> `)}</dd></dl>
<form method="post"><fieldset><legend>It may</legend>
${scopes.map((scope) => html`<label><input type="checkbox" name="scope" value="${scope}" checked> <code>${scope}</code></label>`)}
</fieldset>${hidden(csrf)}<button name="decision" value="approve">Approve</button>${DENY}</form>`,
  );
}

/** A page for what cannot go on. */
export const errorPage = (title: string, detail: string): string => page(title, html`<p>${detail}</p>`);
