import { request } from "node:http";
import { connect, type Socket } from "node:net";
import { codeOf, messageOf } from "@tenon/core";
import { since, type Visit } from "./visit.ts";

/** Where a connection goes: a host and its port, or a unix socket. */
export type Place = { readonly host: string; readonly port: number } | { readonly path: string };

/** Milliseconds until a host that does not answer counts as not there. */
const CONNECT_MS = 2_500;

const shownPlace = (place: Place): string => ("path" in place ? place.path : `${place.host}:${place.port}`);

/** Where an address has several hosts behind it, each failed for itself. */
function reasonOf(error: unknown): { code: string; text: string } {
  const first = error instanceof AggregateError ? error.errors[0] : error;
  return { code: codeOf(first) ?? codeOf(error) ?? "", text: messageOf(first) };
}

function explain(visit: Visit, place: Place, error: unknown): never {
  const { code, text } = reasonOf(error);
  const evidence = text || shownPlace(place);
  if (/^(ENOTFOUND|EAI_)/.test(code)) return visit.fail("dns_failed", { evidence });
  if (code === "ECONNREFUSED" || code === "ENOENT") return visit.fail("refused", { evidence });
  if (code === "ETIMEDOUT") return visit.fail("connect_timeout", { evidence });
  return visit.fail("unreachable_host", { evidence });
}

/**
 * Opens a connection, so that name, host and port are known to be right before anything is said.
 * @returns the socket; the caller destroys it
 * @throws Diagnosis
 */
export function reach(visit: Visit, place: Place, name = "connect"): Promise<Socket> {
  const began = performance.now();
  const signal = visit.deadline.within(CONNECT_MS);
  const socket = connect({ ...place, autoSelectFamily: true });
  let looked = "path" in place;
  socket.on("lookup", (error) => {
    looked = error === null;
  });
  const late = () => socket.destroy(Object.assign(new Error(), { code: "late" }));
  signal.addEventListener("abort", late, { once: true });
  return new Promise<Socket>((resolve, reject) => {
    socket.once("connect", () => {
      visit.facts.latency[name] = since(began);
      resolve(socket);
    });
    // also after it was handed out
    socket.on("error", reject);
  })
    .catch((error: unknown) => {
      if (codeOf(error) !== "late") return explain(visit, place, error);
      const evidence = `${shownPlace(place)}: no ${looked ? "connection" : "address"} within ${since(began)} ms`;
      return visit.fail(looked ? "connect_timeout" : "dns_failed", { evidence });
    })
    .finally(() => signal.removeEventListener("abort", late));
}

/** The same for a proxy, whose absence is another fault. @throws Diagnosis */
async function reachProxy(visit: Visit, proxy: URL): Promise<Socket> {
  const host = proxy.hostname.replace(/^\[|\]$/g, "");
  const port = Number(proxy.port || (proxy.protocol === "https:" ? 443 : 80));
  return reach(visit, { host, port }, "proxy").catch((error: unknown) =>
    visit.fail("proxy_unreachable", { evidence: `${proxy.origin}: ${messageOf(error)}` }),
  );
}

/** Asks a proxy for a tunnel. @throws Diagnosis */
async function openTunnel(visit: Visit, socket: Socket, proxy: URL, to: string): Promise<Socket> {
  const signal = visit.deadline.within(CONNECT_MS);
  const { username, password } = proxy;
  const credentials = Buffer.from(`${decodeURIComponent(username)}:${decodeURIComponent(password)}`).toString("base64");
  const refused = (evidence: string, fix?: string) =>
    visit.fail("proxy_refused", { evidence: `${proxy.origin}: ${evidence}`, ...(fix !== undefined && { fix }) });
  const status = await new Promise<number>((resolve, reject) => {
    const asking = request({
      method: "CONNECT",
      path: to,
      createConnection: () => socket,
      headers: { host: to, ...(username !== "" && { "proxy-authorization": `Basic ${credentials}` }) },
      signal,
    });
    asking.once("connect", ({ statusCode = 0 }) => resolve(statusCode));
    asking.once("response", ({ statusCode = 0 }) => resolve(statusCode));
    asking.once("error", reject);
    asking.end();
  }).catch((error: unknown) => refused(`no tunnel to ${to}: ${messageOf(error)}`));
  if (status === 407) return refused("HTTP 407", "put the user and password of the proxy into HTTPS_PROXY");
  return status === 200 ? socket : refused(`HTTP ${status} for a tunnel to ${to}`);
}

/**
 * Goes as far as the first byte to the server could go through a proxy: to the proxy, and through it for https.
 * @returns the tunnel, where there is one
 * @throws Diagnosis
 */
export async function throughProxy(visit: Visit, proxy: URL, url: URL): Promise<Socket | undefined> {
  visit.secrets.push(...[proxy.username, proxy.password].filter((one) => one.length > 2));
  const socket = await reachProxy(visit, proxy);
  try {
    if (url.protocol === "https:" && proxy.protocol === "http:") {
      return await openTunnel(visit, socket, proxy, `${url.hostname}:${url.port || 443}`);
    }
    socket.destroy();
    return undefined;
  } catch (error) {
    socket.destroy();
    throw error;
  }
}
