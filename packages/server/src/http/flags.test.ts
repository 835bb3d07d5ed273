import { describe, expect, it } from "vitest";
import { type RunOptions, readFlags, usage } from "./flags.ts";

const read = (line: string, options: RunOptions = {}) => readFlags(line.split(" ").filter(Boolean), options);
const http: RunOptions = { transport: "http" };

describe("flags", () => {
  it.each<[string, RunOptions, object]>([
    ["", {}, {}],
    [
      "",
      { ...http, port: 1, tls: { cert: "c", key: "k" } },
      { transport: "http", port: 1, tls: { cert: "c", key: "k" } },
    ],
    [
      "--transport http --port 8030 --path /x --no-banner",
      {},
      { transport: "http", port: 8030, path: "/x", banner: false },
    ],
    ["--transport streamable-http", {}, { transport: "http" }],
    ["--port=0 --host ::1", { ...http, port: 1, path: "/p" }, { transport: "http", port: 0, host: "::1", path: "/p" }],
    ["--unix-socket /run/s", { ...http, port: 1, host: "::" }, { transport: "http", unixSocket: "/run/s" }],
    ["--port 2", { ...http, unixSocket: "/run/s" }, { transport: "http", port: 2 }],
    ["--transport stdio", { ...http, port: 1 }, { transport: "stdio", port: 1 }],
    ["--tls-cert c --tls-key k", http, { transport: "http", tls: { certFile: "c", keyFile: "k" } }],
    [
      "--tls-cert c --tls-key k",
      { ...http, tls: { cert: "C", key: "K", passphrase: "p", minVersion: "TLSv1.3" } },
      { transport: "http", tls: { certFile: "c", keyFile: "k", passphrase: "p", minVersion: "TLSv1.3" } },
    ],
  ])("%j over %j", (line, options, expected) => expect(read(line, options)).toEqual(expected));

  it.each<[string, RunOptions, string]>([
    ["--porrt 8030", http, "Unknown flag --porrt; did you mean --port?"],
    ["--tls-crt=x", http, "Unknown flag --tls-crt; did you mean --tls-cert?"],
    ["--unixsocket /s", http, "did you mean --unix-socket?"],
    [
      "--verbose",
      {},
      "Unknown flag --verbose; known: --transport --port --host --path --unix-socket --tls-cert --tls-key",
    ],
    ["serve", {}, "known: --transport"],
    ["--port", http, "known: --transport"],
    ["--port 80x", http, "--port 80x is not a port: expected a number from 0 to 65535"],
    ["--port 65536", http, "is not a port"],
    ["--host=", http, "--host is empty; expected --host <address>"],
    ["--unix-socket=", http, "--unix-socket is empty"],
    ["--tls-cert c", http, "--tls-cert needs --tls-key"],
    ["--tls-key k", http, "--tls-key needs --tls-cert"],
    ["--unix-socket /s --port 1", http, "--unix-socket and --port exclude each other"],
    ["--unix-socket /s --host ::1", http, "--unix-socket and --host exclude each other"],
    ["--port 8030", {}, "--port says where to listen; it needs --transport http"],
    ["--transport stdio --tls-cert c --tls-key k", http, "--tls-cert says where to listen; it needs --transport http"],
  ])("%j over %j is refused: %s", (line, options, why) => {
    expect(() => read(line, options)).toThrow(
      expect.objectContaining({ name: "ConfigError", code: "flag", message: expect.stringContaining(why) }),
    );
  });
  it.each([
    ["sse", "gone from the protocol"],
    ["htp", "did you mean http?"],
    ["websocket", "use stdio or http"],
  ])("--transport %s is refused", (word, why) => {
    expect(() => read(`--transport ${word}`)).toThrow(
      expect.objectContaining({ code: "transport", message: expect.stringContaining(why) }),
    );
  });
  it("--help shows them all, one a line", () => {
    expect(read("--help --port 1")).toBe("help");
    const lines = usage().trimEnd().split("\n");
    expect(lines.map((line) => line.trim().split(" ")[0])).toEqual(
      expect.arrayContaining(["--transport", "--tls-cert", "--unix-socket", "--help"]),
    );
    for (const line of lines) expect(line).toMatch(/^ {2}--[a-z-]+( <.+>)? {2,}\S.+/);
  });
});
