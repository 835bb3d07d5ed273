import { X509Certificate } from "node:crypto";
import { readFileSync } from "node:fs";
import { hostname, networkInterfaces } from "node:os";
import { urlHost } from "@tenon/core/internal";
import type { Settings } from "./settings.ts";

const OWN = ["localhost", "127.0.0.1", "[::1]"];
const ANY = new Set(["0.0.0.0", "::", "[::]"]);

/** Names a certificate is for; none where it cannot be read, which is told elsewhere. */
function certified(file: string | undefined): string[] {
  if (file === undefined) return [];
  try {
    const { subjectAltName = "" } = new X509Certificate(readFileSync(file));
    return [...subjectAltName.matchAll(/(?:DNS|IP Address):([^,\s]+)/g)].flatMap(([, name = ""]) =>
      name.startsWith("*") ? [] : [urlHost(name)],
    );
  } catch {
    return [];
  }
}

/**
 * Host names the server answers to: those of the file, else what can only be this machine. A name that somebody else could make
 * lead here (DNS rebinding) is none of them: addresses of this machine, its name, what its certificate and its tokens are for.
 */
export function hostsOf({ host, allowedHosts, tls, auth }: Settings): readonly string[] {
  if (allowedHosts) return allowedHosts;
  const audiences = (auth?.audience ?? []).flatMap((one) =>
    /^https?:\/\//.test(one) && URL.canParse(one) ? [new URL(one).hostname] : [],
  );
  const addresses = ANY.has(host)
    ? [
        hostname(),
        ...Object.values(networkInterfaces()).flatMap((list) => (list ?? []).map(({ address }) => urlHost(address))),
      ]
    : [urlHost(host)];
  return [
    ...new Set([...OWN, ...addresses, ...certified(tls?.certFile), ...audiences].map((name) => name.toLowerCase())),
  ];
}
