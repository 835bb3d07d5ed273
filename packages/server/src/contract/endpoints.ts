/** The endpoints for clients from before the protocol had extensions, beside the one of the protocol. */
const ENDPOINTS = ["handshake", "tools/execute", "resources/list", "contexts/get"] as const;
export type CompatibilityEndpoint = (typeof ENDPOINTS)[number];

/**
 * Which of the endpoints a path is.
 * @param base path of the protocol's endpoint; undefined where only the program around the server knows it
 */
export function compatibilityEndpoint(pathname: string, base: string | undefined): CompatibilityEndpoint | undefined {
  const under = base?.replace(/\/$/, "");
  return ENDPOINTS.find((endpoint) =>
    under === undefined ? pathname.endsWith(`/${endpoint}`) : pathname === `${under}/${endpoint}`,
  );
}
