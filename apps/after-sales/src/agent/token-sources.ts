import { isLoopback } from "@tenon/core";
import type { SigningKey } from "@tenon/server/development";
import { SERVER_NAMES, type ServerName } from "../servers/names.ts";
import { mintedTokens, readTokenFile, type TokenSource } from "./tokens.ts";

/** A value for some of the servers. */
type PerServer<T> = Partial<Record<ServerName, T>>;

/** The variable with a token for a server: on a command line, everybody on the machine could read it. */
export const tokenVariable = (server: ServerName): string => `TENON_${server.toUpperCase()}_TOKEN`;

/** Tokens a person brought: for each server from its file, else from the environment. */
export function givenTokens(files: PerServer<string | undefined>, env: NodeJS.ProcessEnv): PerServer<() => string> {
  const given: PerServer<() => string> = {};
  for (const name of SERVER_NAMES) {
    const file = files[name];
    const token = env[tokenVariable(name)]?.trim();
    if (file !== undefined) given[name] = () => readTokenFile(file);
    else if (token) given[name] = () => token;
  }
  return given;
}

/**
 * Where the tokens for each server come from. The desk's own stay on this machine: a server elsewhere could use one that it was
 * sent at the server here, which it was made for.
 */
export function tokensFor(
  urls: Readonly<Record<ServerName, string>>,
  given: PerServer<() => string>,
  key: SigningKey,
): PerServer<TokenSource> {
  const sources: PerServer<TokenSource> = {};
  for (const name of SERVER_NAMES) {
    const brought = given[name];
    if (brought) sources[name] = async () => brought();
    else if (isLoopback(new URL(urls[name]).hostname)) sources[name] = mintedTokens(key, name);
  }
  return sources;
}
