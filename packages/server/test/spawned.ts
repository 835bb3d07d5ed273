import { Client, type ClientOptions, type JSONRPCMessage, type Transport } from "@modelcontextprotocol/client";
import { getDefaultEnvironment, StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { programs } from "../../../test/programs.ts";
import type { Mode } from "./servers.ts";

/**
 * Hands over one message a turn: the SDK's client forgets a call's progress handler as soon as the result arrives, and drops
 * progress that came in the same chunk.
 */
class PacedStdio implements Transport {
  onmessage?: (message: JSONRPCMessage) => void;
  onclose?: () => void;
  onerror?: (error: Error) => void;
  readonly #inner: StdioClientTransport;
  #turn = Promise.resolve();
  constructor(parameters: ConstructorParameters<typeof StdioClientTransport>[0]) {
    this.#inner = new StdioClientTransport(parameters);
    this.#inner.onclose = () => this.onclose?.();
    this.#inner.onerror = (error) => this.onerror?.(error);
    this.#inner.onmessage = (message) => {
      this.#turn = this.#turn
        .then(() => new Promise<void>((resolve) => setImmediate(resolve)))
        .then(() => this.onmessage?.(message));
    };
  }
  start = (): Promise<void> => this.#inner.start();
  send = (message: JSONRPCMessage): Promise<void> => this.#inner.send(message);
  close = (): Promise<void> => this.#inner.close();
}

/** A client of a server program, given as its TypeScript file. @param env of the program, besides what every program gets */
export async function spawn(
  file: string,
  mode: Mode,
  options: ClientOptions = {},
  env: Record<string, string> = {},
): Promise<Client> {
  const client = new Client(
    { name: "test", version: "1" },
    { ...options, versionNegotiation: { mode: mode === "modern" ? "auto" : "legacy" } },
  );
  await client.connect(
    new PacedStdio({
      command: process.execPath,
      args: await programs([file]),
      env: { ...getDefaultEnvironment(), ...env },
      stderr: "ignore",
    }),
  );
  return client;
}
