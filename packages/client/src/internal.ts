// What the packages above share with this one and promise to nobody else: it may change with any release.
export { readChallenge } from "./auth/challenge.ts";
export type { AuthSession, Challenge } from "./auth/types.ts";
export { nameTools } from "./catalog/names.ts";
export { baseEnvironment } from "./connection/environment.ts";
export { launchOf } from "./connection/launch.ts";
export { placeOf, shownAddress } from "./connection/place.ts";
export { Pools, type Route } from "./connection/pool.ts";
export { proxyFor } from "./connection/proxy.ts";
export { secretsOf, withoutSecrets } from "./connection/secrets.ts";
export type { EndpointConfig } from "./types/servers.ts";
