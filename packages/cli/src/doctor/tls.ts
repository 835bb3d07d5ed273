import { isIP, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";
import { codeOf, messageOf } from "@tenon/core";
import { since, type Visit } from "./visit.ts";

const HANDSHAKE_MS = 2_000;
/** What OpenSSL says when the first bytes of an answer are no TLS. */
const NO_TLS = /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|HTTP_REQUEST|UNKNOWN_PROTOCOL|UNEXPECTED_MESSAGE/;
const UNTRUSTED = /SELF_SIGNED|UNABLE_TO_(GET_ISSUER|VERIFY)|CERT_(UNTRUSTED|CHAIN_TOO_LONG)|INVALID_CA/;
const OUT_OF_TIME = /CERT_(HAS_EXPIRED|NOT_YET_VALID)/;

/** What to trust, and which name to ask for. */
export interface TlsOptions {
  readonly host: string;
  readonly ca?: string | string[] | undefined;
}

/**
 * The handshake on an open connection. The certificate is judged afterwards, so that one look tells everything that is wrong with
 * it; nothing else is sent on the connection.
 */
async function shake(visit: Visit, socket: Socket, { host, ca }: TlsOptions): Promise<TLSSocket> {
  const signal = visit.deadline.within(HANDSHAKE_MS);
  const secured = connect({
    socket,
    host,
    ...(isIP(host) === 0 && { servername: host }),
    ...(ca !== undefined && { ca }),
    rejectUnauthorized: false,
  });
  return new Promise((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new Error("no answer in time")), { once: true });
    secured.once("secureConnect", () => resolve(secured));
    secured.on("error", reject);
    secured.once("close", () => reject(new Error("the connection was closed during the handshake")));
  });
}

function judge(visit: Visit, secured: TLSSocket, { host }: TlsOptions): void {
  if (secured.authorized) return;
  const reason = secured.authorizationError;
  // Node gives an error where its types say so, and the code as a text elsewhere
  const code = typeof reason === "string" ? reason : (codeOf(reason) ?? messageOf(reason));
  const { valid_from, valid_to, subject, subjectaltname, issuer } = secured.getPeerCertificate();
  const now = Date.now();
  if (OUT_OF_TIME.test(code) || Date.parse(valid_to) < now || Date.parse(valid_from) > now) {
    visit.fail("tls_expired", { evidence: `valid from ${valid_from} until ${valid_to}` });
  }
  if (UNTRUSTED.test(code)) {
    const by = issuer?.CN ?? issuer?.O ?? "nobody";
    visit.fail("tls_untrusted", { evidence: `${code}: issued to ${subject?.CN ?? "?"} by ${by}` });
  }
  if (/ALTNAME/.test(code)) {
    visit.fail("tls_wrong_host", {
      evidence: `it is for ${subjectaltname ?? subject?.CN ?? "no name"}, not for ${host}`,
    });
  }
  visit.fail("tls_failed", { evidence: code });
}

/** Checks TLS and the certificate on an open connection. @throws Diagnosis */
export async function checkTls(visit: Visit, socket: Socket, options: TlsOptions): Promise<void> {
  const began = performance.now();
  const secured = await shake(visit, socket, options).catch((error: unknown): never => {
    const code = `${codeOf(error) ?? ""} ${messageOf(error)}`;
    if (NO_TLS.test(code) || /wrong version number|packet length/i.test(code)) {
      return visit.fail("https_on_http_port", { evidence: "the answer to the TLS handshake is no TLS" });
    }
    return visit.fail("tls_failed", { evidence: messageOf(error) });
  });
  visit.facts.latency.tls = since(began);
  judge(visit, secured, options);
  secured.destroy();
}

/** Whether a port that was asked in plain HTTP speaks TLS. */
export async function speaksTls(visit: Visit, socket: Socket, host: string): Promise<boolean> {
  return shake(visit, socket, { host }).then(
    (secured) => {
      secured.destroy();
      return true;
    },
    () => false,
  );
}
