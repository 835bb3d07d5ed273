import { describe, expect, it } from "vitest";
import { checkSandbox, commandLineOf, launchOf } from "./launch.ts";

describe("how a child process is started", () => {
  const config = { command: "node", args: ["server.js", "a b"], env: { TOKEN: "secret" }, cwd: "/srv" };
  it("is as configured without a sandbox", () => {
    expect(launchOf(config)).toEqual({
      command: "node",
      args: ["server.js", "a b"],
      env: { TOKEN: "secret" },
      cwd: "/srv",
    });
  });
  it("is a container without network, without rights, with the mounts it was given", () => {
    const mounts = [
      { source: "data", target: "/data" },
      { source: "/out", target: "/out", writable: true },
    ];
    const launch = launchOf({
      ...config,
      sandbox: { container: "podman", image: "node:22", user: "1000:1000", mounts },
    });
    expect(launch.command).toBe("podman");
    expect(launch.args).toEqual([
      "run",
      "--rm",
      "--interactive",
      "--init",
      "--network",
      "none",
      "--cap-drop",
      "ALL",
      "--security-opt",
      "no-new-privileges",
      "--user",
      "1000:1000",
      "--mount",
      "type=bind,source=/srv/data,target=/data,readonly",
      "--mount",
      "type=bind,source=/out,target=/out",
      "--env",
      "TOKEN",
      "node:22",
      "node",
      "server.js",
      "a b",
    ]);
    expect(launch.args.join(" ")).not.toContain("secret");
    expect(launch.env).toEqual({ TOKEN: "secret" });
  });
  it("is another user's process through sudo, which never asks for a password", () => {
    const { command, args } = launchOf({ ...config, sandbox: { user: "mcp" } });
    expect([command, ...args]).toEqual([
      "sudo",
      "-n",
      "-u",
      "mcp",
      "--preserve-env=TOKEN",
      "--",
      "node",
      "server.js",
      "a b",
    ]);
    expect(launchOf({ command: "x", sandbox: { user: "1000" } }).args).toContain("#1000");
  });
  it("can be shown to a person, without secrets and without anything hidden", () => {
    expect(commandLineOf(config)).toBe("TOKEN=… node server.js 'a b' (in /srv)");
    expect(commandLineOf({ command: "node", args: ["it's", "$(rm -rf /)", "a\u200bb\n"] })).toBe(
      "node 'it'\\''s' '$(rm -rf /)' 'a\\u{200b}b\n'",
    );
  });
  it.each([
    [{ container: "docker", image: "--privileged" }, "image"],
    [{ container: "docker" }, "image"],
    [{ container: "lxc", image: "x" }, "docker"],
    [{ container: "docker", image: "x", network: "--net=host" }, "network"],
    [{ container: "docker", image: "x", mounts: [{ source: "/a,readonly=false", target: "/a" }] }, "commas"],
    [{ container: "docker", image: "x", mounts: [{ source: "/a", target: "a" }] }, "absolute"],
    [{ container: "docker", image: "x", mounts: ["/a:/a"] }, "source"],
    [{ user: "-oops" }, "user"],
    [{ image: "x" }, "container"],
    [{}, "user"],
    [{ user: "a", contianer: "docker" }, 'did you mean "container"'],
    ["docker", "object"],
  ])("refuses %j", (sandbox, why) => {
    expect(() => checkSandbox(sandbox, "servers.x.sandbox")).toThrow(why);
  });
});
