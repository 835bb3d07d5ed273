import { type Command, InvalidArgumentError } from "commander";
import { attempt } from "../failure.ts";
import { collect, wholeNumber, words } from "../options.ts";
import { keyFile } from "./keys.ts";

interface TokenFlags {
  subject: string;
  audience: string[];
  scope?: string[];
  expires: number;
  issuer?: string;
  clientId?: string;
  claim?: Map<string, unknown>;
  key?: string;
  json?: boolean;
}

/** `tenant=acme`, `level=3`, `roles=["a"]`: JSON where it is JSON, else text. */
function claim(text: string, before: Map<string, unknown> = new Map()): Map<string, unknown> {
  const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError("Expected name=value.");
  if (before.has(name)) throw new InvalidArgumentError(`The claim ${name} is given twice.`);
  try {
    return new Map(before).set(name, JSON.parse(value));
  } catch {
    return new Map(before).set(name, value);
  }
}

async function printToken(flags: TokenFlags): Promise<void> {
  const { loadSigningKey, signToken, DEVELOPMENT_ISSUER } = await import("@tenon/server/development");
  await attempt("no token was signed", async () => {
    const issuer = flags.issuer ?? DEVELOPMENT_ISSUER;
    const token = await signToken({
      key: await loadSigningKey(await keyFile(flags.key)),
      issuer,
      subject: flags.subject,
      audience: flags.audience,
      ttlMs: flags.expires * 1_000,
      ...(flags.scope && { scopes: flags.scope }),
      ...(flags.clientId !== undefined && { clientId: flags.clientId }),
      ...(flags.claim && { claims: Object.fromEntries(flags.claim) }),
    });
    const { audience, subject, scope = [], expires } = flags;
    process.stdout.write(
      flags.json
        ? `${JSON.stringify({ token, issuer, subject, audience, scope: scope.join(" "), expiresInSeconds: expires })}\n`
        : `${token}\n`,
    );
  });
}

/** `tenon token`. */
export function addToken(program: Command): void {
  program
    .command("token")
    .description("sign an access token for development; stdout carries nothing but the token")
    .requiredOption("--subject <user>", "who the token is about (sub)")
    .requiredOption("--audience <url>", "the server that takes it (aud); may be repeated", collect)
    .option("--scope <scopes>", "what it is good for; may be repeated, or hold several between spaces", words)
    .option("--expires <seconds>", "lifetime, at most a day", wholeNumber(1, 86_400), 3_600)
    .option("--issuer <url>", "who issued it (iss; default: http://127.0.0.1:4749, as tenon auth-server)")
    .option("--client-id <id>", "the program it was given to (client_id; default: tenon-development)")
    .option("--claim <name=value>", "a further claim; JSON where it is JSON, else text; may be repeated", claim)
    .option("--key <file>", "private key (default: the one in the data directory)")
    .option("--json", "print the token and what it says as JSON")
    .addHelpText(
      "after",
      `
Examples:
  tenon token --subject alice --audience http://127.0.0.1:8000/mcp --scope orders:read
  curl http://127.0.0.1:8000/mcp -H "Content-Type: application/json" -H "Accept: application/json, text/event-stream" \\
    -H "Authorization: Bearer $(tenon token --subject alice --audience http://127.0.0.1:8000/mcp)" \\
    -d '{"jsonrpc":"2.0","id":1,"method":"tools/list"}'

The audience is what the server's \`audience\` says, to the letter: localhost is not 127.0.0.1.`,
    )
    .action(printToken);
}
