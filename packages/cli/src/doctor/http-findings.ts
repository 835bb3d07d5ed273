import { shownAddress } from "@tenon/client/internal";
import { isRecord, messageOf } from "@tenon/core";
import { explainRefusal } from "./auth.ts";
import type { Wire } from "./channel.ts";
import type { Answer } from "./http.ts";
import { parseJson } from "./json.ts";
import { reach } from "./net.ts";
import { isSse } from "./sse.ts";
import { speaksTls } from "./tls.ts";

type Answered = Answer & { kind: "answer" };

/** Words of others in a finding. */
const SAID = 120;
const isHtml = ({ headers, text }: Answered): boolean =>
  /^(text\/html|application\/xhtml)/i.test(headers["content-type"] ?? "") || /^\s*<(!doctype html|html)/i.test(text);

function title(text: string): string {
  const [, found] = /<title[^>]*>([^<]*)/i.exec(text) ?? [];
  return found?.trim() ? `a page titled "${found.trim()}"` : "an HTML page";
}

const said = ({ text }: Answered): string => (text.trim() === "" ? "" : `: ${text.trim().slice(0, SAID)}`);

/** What an error of the HTTP client says, down to the system's own words. */
function chain(error: unknown): string {
  const parts: string[] = [];
  for (let at = error, steps = 0; at !== undefined && steps < 5; steps++) {
    const code = at instanceof Error && "code" in at ? `${at.code} ` : "";
    parts.push(`${code}${messageOf(at)}`);
    at = at instanceof Error ? at.cause : undefined;
  }
  return parts.join("; ");
}

async function whetherTls(wire: Wire, url: URL): Promise<boolean> {
  const { visit, route, place } = wire;
  if (url.protocol !== "http:" || route.proxy !== undefined) return false;
  const socket = await reach(visit, place, "tlsTry").catch(() => undefined);
  delete visit.facts.latency.tlsTry;
  return socket !== undefined && (await speaksTls(visit, socket, url.hostname));
}

async function explainFailure(wire: Wire, { url, error }: Answer & { kind: "failed" }): Promise<never> {
  const { visit, route } = wire;
  const evidence = chain(error);
  if (/Proxy response/.test(evidence)) return visit.fail("proxy_refused", { evidence: `${route.proxy}: ${evidence}` });
  if (/CERT_HAS_EXPIRED|CERT_NOT_YET/.test(evidence)) return visit.fail("tls_expired", { evidence });
  if (/ALTNAME/.test(evidence)) return visit.fail("tls_wrong_host", { evidence });
  if (/SELF_SIGNED|UNABLE_TO_/.test(evidence)) return visit.fail("tls_untrusted", { evidence });
  if (/ERR_SSL|EPROTO|certificate required/i.test(evidence)) return visit.fail("tls_failed", { evidence });
  if (await whetherTls(wire, url))
    return visit.fail("http_on_tls_port", { evidence: "the port answers a TLS handshake" });
  if (/HPE_|parse error|Expected HTTP/i.test(evidence)) return visit.fail("not_http", { evidence });
  return visit.fail("closed_without_answer", { evidence });
}

/** Where an MCP endpoint is, if one is near: found by asking. */
async function nearby(wire: Wire, url: URL): Promise<string | undefined> {
  const base = url.pathname.replace(/\/+$/, "");
  const paths = [...new Set(["/mcp", `${base}/mcp`, base, `${base}/`, "/"])].filter(
    (path) => path !== "" && path !== url.pathname,
  );
  const found = await Promise.all(
    paths.map(async (path) => {
      const answer = await wire.probe(new URL(path, url), 700);
      return answer.kind === "answer" && (answer.message !== undefined || answer.status === 401);
    }),
  );
  const old = url.pathname !== "/sse" && (await isSse(wire, new URL("/sse", url))) ? "/sse" : undefined;
  const path = paths.find((_, index) => found[index]) ?? old;
  return path === undefined ? undefined : shownAddress(new URL(path, url));
}

const fixFor = (near: string | undefined) =>
  near === undefined ? {} : { fix: `use ${near}: an MCP endpoint answers there` };

async function explainStatus(wire: Wire, answer: Answered): Promise<void> {
  const { visit, route } = wire;
  const { status, headers, url } = answer;
  const proxied = route.proxy !== undefined;
  const evidence = `HTTP ${status}${isHtml(answer) ? `, ${title(answer.text)}` : said(answer)}`;
  if (status >= 300 && status < 400) {
    const { location = "" } = headers;
    const to = URL.canParse(location, url.href) ? shownAddress(new URL(location, url)) : "nowhere";
    return visit.fail("redirect", { evidence: `HTTP ${status} to ${to}` });
  }
  if (status === 401 || status === 403) return explainRefusal(wire, answer);
  if (status === 407) return visit.fail("proxy_refused", { evidence: `${route.proxy ?? "a proxy"}: ${evidence}` });
  if (status === 429) {
    const wait = headers["retry-after"];
    return visit.fail("rate_limited", {
      evidence: `HTTP 429${wait === undefined ? "" : `, Retry-After: ${wait}`}`,
      ...(wait !== undefined && /^\d+$/.test(wait) && { fix: `wait ${wait} s, then try again` }),
    });
  }
  if (proxied && isHtml(answer)) return visit.fail("proxy_html", { evidence: `${evidence}, through ${route.proxy}` });
  if (proxied && url.protocol === "http:" && [502, 503, 504].includes(status)) {
    return visit.fail("proxy_refused", { evidence: `${evidence}, through ${route.proxy}` });
  }
  if (status >= 500) return visit.fail("server_error", { evidence });
  if (status === 404 || status === 410) {
    return visit.fail("wrong_path", { evidence: `${evidence} at ${url.pathname}`, ...fixFor(await nearby(wire, url)) });
  }
  if (status === 405) {
    const allow = headers.allow === undefined ? "" : `, Allow: ${headers.allow}`;
    return visit.fail("wrong_method", { evidence: `HTTP 405 for POST${allow}`, ...fixFor(await nearby(wire, url)) });
  }
  if (status === 406) return visit.fail("not_acceptable", { evidence });
  if (status === 415) return visit.fail("content_type_refused", { evidence });
  if (isHtml(answer)) return visit.fail("html_page", { evidence, ...fixFor(await nearby(wire, url)) });
  if (/plain HTTP|HTTPS port|TLS|requires? (https|ssl)/i.test(answer.text) && (await whetherTls(wire, url)))
    return visit.fail("http_on_tls_port", { evidence });
  if (status >= 400) return visit.fail("http_refused", { evidence });
}

/** The id of a JSON-RPC answer that is not for the request it came with; undefined where the text is no such answer. */
function foreignId(text: string): string | undefined {
  const lines = text.split(/\r\n|\r|\n/).flatMap((line) => /^data: ?(.*)$/.exec(line)?.[1] ?? []);
  for (const one of [text, ...lines]) {
    const value = parseJson(one);
    const isAnswer = isRecord(value) && value.jsonrpc === "2.0" && ("result" in value || "error" in value);
    if (isAnswer && value.id !== undefined && value.id !== null) return JSON.stringify(value.id);
  }
  return undefined;
}

function explainBody({ visit }: Wire, answer: Answered): never {
  const { status, text, end, ms } = answer;
  const type = answer.headers["content-type"];
  const stream = /^text\/event-stream/i.test(type ?? "");
  if (end === "large" && !stream) return visit.fail("too_large", { evidence: "more than 4 MiB" });
  if (end === "time" || end === "large")
    return visit.fail("endless_answer", { evidence: `${text.length} characters in ${ms} ms, no end` });
  if (end === "cut") return visit.fail("closed_without_answer", { evidence: "the answer broke off" });
  const id = foreignId(text);
  if (id !== undefined) return visit.fail("wrong_id", { evidence: `id ${id}${said(answer)}` });
  if (stream || text.trim() === "") {
    const what = stream ? `an event stream that ended without the answer${said(answer)}` : "an empty body";
    return visit.fail("empty_answer", { evidence: `HTTP ${status}, ${what}` });
  }
  return visit.fail("not_jsonrpc", { evidence: `${type ?? "no Content-Type"}${said(answer)}` });
}

/** Why the answer to a method's request is none of the protocol. @throws Diagnosis always */
export async function explainAnswer(wire: Wire, answer: Answer, method: string): Promise<never> {
  const { visit } = wire;
  if (answer.kind === "failed") return explainFailure(wire, answer);
  if (answer.kind === "silent")
    return visit.fail("no_answer", { evidence: `${method}: nothing within ${answer.ms} ms` });
  await explainStatus(wire, answer);
  return explainBody(wire, answer);
}

/** An answer that is right but for its Content-Type, which clients look at first. */
export function checkContentType({ visit }: Wire, answer: Answered): void {
  const type = answer.headers["content-type"] ?? "";
  if (answer.status >= 400 || /^(application\/json|text\/event-stream)\b/i.test(type)) return;
  visit.fail("wrong_content_type", { evidence: type === "" ? "there is none" : type });
}
