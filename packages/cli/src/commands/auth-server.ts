import { type Command, InvalidArgumentError } from "commander";
import type { AuthServerFlags } from "../auth-server/run.ts";
import { attempt } from "../failure.ts";
import { collect, httpUrl, wholeNumber, words } from "../options.ts";

const PORT = 4_749;
const RESOURCE = "http://127.0.0.1:8000/mcp";
const MAX_TOKEN_SECONDS = 86_400;
/** What a person may be called on the sign-in page. */
const USER = /^[\w.@+-]{1,64}$/;

function userName(text: string): string {
  if (USER.test(text)) return text;
  throw new InvalidArgumentError("Expected up to 64 letters, digits and any of . _ @ + -");
}

/** An origin: the metadata documents lie below it, and the addresses in them begin with it. */
function origin(text: string): string {
  const url = new URL(httpUrl(text));
  if (url.pathname === "/" && url.search === "") return url.origin;
  throw new InvalidArgumentError("Expected an address without a path.");
}

/** `tenon auth-server`. */
export function addAuthServer(program: Command): void {
  program
    .command("auth-server")
    .description("an OAuth authorization server for development: sign-in without passwords, everything in memory")
    .option("--port <port>", "port to listen on; 0 takes a free one", wholeNumber(0, 65_535), PORT)
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--issuer <origin>", "how others reach it, where that is not http://<host>:<port>", origin)
    .option(
      "--resource <url>",
      `a server that tokens may be for (default: ${RESOURCE}); may be repeated`,
      (value: string, before?: readonly string[]) => collect(httpUrl(value), before),
    )
    .option("--scope <scopes>", "what can be asked for (default: mcp); may be repeated", words)
    .option(
      "--user <name>",
      "who can sign in (default: any name); may be repeated",
      (value: string, before?: readonly string[]) => collect(userName(value), before),
    )
    .option("--client <client>", "id=redirect-uri, id:secret, or a .json file of client metadata", collect)
    .option("--no-registration", "refuse dynamic client registration")
    .option("--expires <seconds>", "lifetime of access tokens", wholeNumber(1, MAX_TOKEN_SECONDS), 3_600)
    .option("--key <file>", "private key (default: the one in the data directory, made when it is missing)")
    .option("--auto-approve <user>", "for scripts: sign this user in and approve everything without asking", userName)
    .option("--json", "print issuer and addresses as one line of JSON on stdout")
    .addHelpText(
      "after",
      `
Examples:
  tenon auth-server --resource http://127.0.0.1:8000/mcp --scope "orders:read orders:refund"
  tenon auth-server --user alice --user bob --client web=http://127.0.0.1:3000/callback
  tenon auth-server --client nightly:a-long-secret --auto-approve ci

Clients identify themselves by a metadata document (CIMD), by registration, or with --client.
Nothing is kept but the signing key: Ctrl-C ends sign-ins, registrations and refresh tokens.`,
    )
    .action(async (flags: Partial<AuthServerFlags> & Pick<AuthServerFlags, "port" | "host" | "expires">) => {
      const { runAuthServer } = await import("../auth-server/run.ts");
      await attempt("the authorization server does not run", () =>
        runAuthServer({ registration: true, resource: [RESOURCE], scope: ["mcp"], ...flags }),
      );
    });
}
