import { type OAuthOptions, oauth } from "../src/auth/index.ts";
import { connect, start, stubHttp } from "./stub/index.ts";
import { type IssuerBehavior, type Protection, protectedBy, startIssuer } from "./stub/issuer.ts";

/** A protected server, its issuer, and a client whose person consents at once. */
export async function scene(
  given: { issuer?: IssuerBehavior; server?: Protection; oauth?: OAuthOptions; era?: "modern" | "legacy" } = {},
) {
  const issuer = await start(startIssuer(given.issuer));
  const onHttp = protectedBy(() => issuer, given.server);
  const server = await start(stubHttp({ onHttp, ...(given.era && { era: given.era }) }));
  const shown: string[] = [];
  const auth = oauth({
    onAuthorize: ({ url }) => {
      shown.push(url);
      // a browser: the client's own page answers the request that leads back
      void issuer.browse(url).then((back) => fetch(back));
      return undefined;
    },
    ...given.oauth,
  });
  const client = connect({ s: { ...server.config, auth, connectTimeoutMs: 20_000, required: true } });
  return { issuer, server, auth, client, shown };
}
export type Scene = Awaited<ReturnType<typeof scene>>;

/** What the server was shown, each once. */
export const bearers = ({ server }: Scene) => [
  ...new Set(server.hits.filter(({ path }) => path === "/mcp").map(({ headers }) => headers.authorization)),
];
/** How a promise ends: the code of its error. */
export const codeOf = (promise: Promise<unknown>) =>
  promise.then(
    () => "no error",
    (error: { code?: string }) => error.code,
  );
