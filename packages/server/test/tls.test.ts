// TLS: both revisions, and a certificate that is replaced while connections are open.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Agent as HttpsAgent } from "node:https";
import { connect as connectSocket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls, type TLSSocket } from "node:tls";
import { createClient, renderText } from "@tenon/client";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { program } from "../../../test/programs.ts";
import type { LogEntry, TenonServer } from "../src/index.ts";
import { FIRST, pemPath, SECOND } from "./certificates.ts";
import { call } from "./paths-cases.ts";
import { initialize, legacy, modern, overSocket, sessionOf } from "./raw-requests.ts";
import { shop } from "./servers.ts";

let folder: string;
let log: LogEntry[];
let server: TenonServer;
let certFile: string;
let keyFile: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "tenon-tls-"));
  log = [];
  server = shop({ logSink: (entry) => log.push(entry) });
  [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  write(FIRST);
});
afterEach(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

function write({ cert, key }: { cert: string; key: string }, into = folder): void {
  writeFileSync(join(into, "tls.crt"), cert);
  writeFileSync(join(into, "tls.key"), key);
}
const messages = (level: string): string[] => log.filter((line) => line.level === level).map(({ message }) => message);
/** Machines are busy; a folder that is not watched is looked at every ten seconds. */
const SOON = { timeout: 18_000 };
const trusting = { ca: [FIRST.cert, SECOND.cert] };

/** The name in the certificate that a new connection is shown. */
async function shown(port: number | undefined): Promise<string> {
  const socket = connectTls({ port: port ?? 0, host: "127.0.0.1", ...trusting });
  await once(socket, "secureConnect");
  const name = String(socket.getPeerCertificate().subject.CN);
  socket.destroy();
  return name;
}

describe("a server with a certificate", () => {
  it("answers @tenon/client, which trusts its authority and nobody else", async () => {
    const { url } = await server.listen({ port: 0, tls: FIRST });
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+\/mcp$/);
    await using client = createClient({ servers: { shop: { url, ca: FIRST.cert } } });
    expect(renderText((await client.callTool("shop", "add", { a: 2, b: 3 })).content)).toBe("5");
    expect(client.servers()[0]).toMatchObject({ health: "up", era: "modern" });
    await using stranger = createClient({ servers: { shop: { url, ca: SECOND.cert } } });
    await expect(stranger.callTool("shop", "add", { a: 2, b: 3 })).rejects.toMatchObject({ name: "ConnectionError" });
  });
  it("answers both revisions straight and in a session", async () => {
    const { port } = await server.listen({ port: 0, tls: { certFile, keyFile } });
    const to = { protocol: "https:", host: "127.0.0.1", port, path: "/mcp", ...trusting };
    const opened = await overSocket(to, initialize());
    const headers = sessionOf(opened);
    for (const raw of [
      modern("tools/call", call("add", { a: 1, b: 2 })),
      legacy("tools/call", call("add", { a: 1, b: 2 })),
      legacy("tools/call", call("add", { a: 1, b: 2 }), { headers }),
    ]) {
      const answer = await overSocket(to, raw);
      expect(answer).toMatchObject({ status: 200 });
      expect(answer.text).toContain('"text":"3"');
    }
  });
  it("speaks TLS 1.2 at the oldest, or 1.3 where that is asked for", async () => {
    const { port } = await server.listen({ port: 0, tls: { ...FIRST, minVersion: "TLSv1.3" } });
    const old = connectTls({ port: port ?? 0, host: "127.0.0.1", ...trusting, maxVersion: "TLSv1.2" });
    const [error] = await once(old, "error");
    expect(String(error)).toMatch(/protocol version/i);
  });
  it("goes on after whoever speaks no TLS at all", async () => {
    const { port } = await server.listen({ port: 0, tls: FIRST });
    const plain = connectSocket(port ?? 0, "127.0.0.1").on("error", () => undefined);
    plain.write("GET /mcp HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(plain, "close");
    expect(await shown(port)).toBe("tenon test first");
  });
  it("closes although somebody never ends the handshake", async () => {
    const { port, close } = await server.listen({ port: 0, tls: FIRST });
    const silent = connectSocket(port ?? 0, "127.0.0.1").on("error", () => undefined);
    await once(silent, "connect");
    const gone = once(silent, "close");
    await shown(port); // the server has accepted both
    await close(50);
    await gone;
  });
  it("does not listen with files it cannot use, and says which", async () => {
    const bad = server.listen({ port: 0, tls: { certFile, keyFile: join(folder, "none.key") } });
    await expect(bad).rejects.toMatchObject({
      code: "tls",
      message: `tls.keyFile ${join(folder, "none.key")} does not exist`,
    });
  });
});

describe("a certificate that is replaced while the server runs", () => {
  it("is shown to new connections, and open ones go on", async () => {
    server.tool("slow-one", {}, async () => {
      await expect.poll(() => messages("info"), SOON).toEqual(["the TLS certificate was replaced"]);
      return "done after it";
    });
    const { port } = await server.listen({ port: 0, tls: { certFile, keyFile } });
    const agent = new HttpsAgent({ keepAlive: true, maxSockets: 1, ...trusting });
    const to = { protocol: "https:", host: "127.0.0.1", port, path: "/mcp", agent };
    await overSocket(to, modern("tools/list"));
    const [kept] = Object.values(agent.freeSockets).flat() as TLSSocket[]; // of an https agent
    const running = overSocket(to, modern("tools/call", call("slow-one")));
    write(SECOND);
    expect((await running).text).toContain("done after it");
    expect(await shown(port)).toBe("tenon test second");
    expect((await overSocket(to, modern("tools/call", call("add", { a: 1, b: 2 })))).status).toBe(200);
    expect(kept?.getPeerCertificate().subject.CN).toBe("tenon test first");
    expect(Object.values(agent.freeSockets).flat()).toEqual([kept]); // the same connection all along
    agent.destroy();
  });
  it("may be renamed into its place", async () => {
    const { port } = await server.listen({ port: 0, tls: { certFile, keyFile } });
    writeFileSync(join(folder, "new.crt"), SECOND.cert);
    writeFileSync(join(folder, "new.key"), SECOND.key);
    renameSync(join(folder, "new.crt"), certFile);
    renameSync(join(folder, "new.key"), keyFile);
    await expect.poll(() => shown(port), SOON).toBe("tenon test second");
  });
  it("may be a link to a folder that is swapped, as in a Kubernetes secret", async () => {
    const mounted = join(folder, "mounted");
    mkdirSync(join(mounted, "..1"), { recursive: true });
    write(FIRST, join(mounted, "..1"));
    symlinkSync("..1", join(mounted, "..data"));
    for (const name of ["tls.crt", "tls.key"]) symlinkSync(join("..data", name), join(mounted, name));
    const { port } = await server.listen({
      port: 0,
      tls: { certFile: join(mounted, "tls.crt"), keyFile: join(mounted, "tls.key") },
    });
    mkdirSync(join(mounted, "..2"));
    write(SECOND, join(mounted, "..2"));
    symlinkSync("..2", join(mounted, "..data_tmp"));
    renameSync(join(mounted, "..data_tmp"), join(mounted, "..data"));
    rmSync(join(mounted, "..1"), { recursive: true });
    await expect.poll(() => shown(port), SOON).toBe("tenon test second");
  });
  it("may be links that are turned one after the other, as certbot does", async () => {
    const archive = join(folder, "archive");
    mkdirSync(archive);
    for (const [at, { cert, key }] of [FIRST, SECOND].entries()) {
      writeFileSync(join(archive, `cert${at}.pem`), cert);
      writeFileSync(join(archive, `key${at}.pem`), key);
    }
    const live = join(folder, "live");
    mkdirSync(live);
    const turn = (name: string, at: number): void => {
      symlinkSync(`../archive/${name}${at}.pem`, join(live, `${name}.tmp`));
      renameSync(join(live, `${name}.tmp`), join(live, `${name}.pem`));
    };
    turn("cert", 0);
    turn("key", 0);
    const { port } = await server.listen({
      port: 0,
      tls: { certFile: join(live, "cert.pem"), keyFile: join(live, "key.pem") },
    });
    turn("cert", 1);
    expect(await shown(port)).toBe("tenon test first"); // the two do not fit yet
    turn("key", 1);
    await expect.poll(() => shown(port), SOON).toBe("tenon test second");
  });
  it("is not used when its key is another's: the old one stays, and the log says so once", async () => {
    const { port } = await server.listen({ port: 0, tls: { certFile, keyFile } });
    writeFileSync(certFile, SECOND.cert);
    const told = ["the new TLS certificate cannot be used; the old one stays"];
    await expect.poll(() => messages("error"), SOON).toEqual(told);
    expect(JSON.stringify(log)).toContain("does not belong to the first certificate");
    expect(JSON.stringify(log)).not.toContain("PRIVATE KEY");
    expect(await shown(port)).toBe("tenon test first");
    writeFileSync(keyFile, SECOND.key);
    await expect.poll(() => shown(port), SOON).toBe("tenon test second");
    expect(messages("error")).toEqual(told);
  });
  it("may vanish: the old one stays", async () => {
    const { port } = await server.listen({ port: 0, tls: { certFile, keyFile } });
    rmSync(certFile);
    rmSync(keyFile);
    await expect.poll(() => messages("error"), SOON).toHaveLength(1);
    expect(await shown(port)).toBe("tenon test first");
    write(SECOND);
    await expect.poll(() => shown(port), SOON).toBe("tenon test second");
  });
  it("is not looked for any more when the server is closed", async () => {
    const { close } = await server.listen({ port: 0, tls: { certFile, keyFile } });
    await close();
    write(SECOND);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(log).toEqual([]);
  });
});

describe("a program with --tls-cert and --tls-key", async () => {
  const served = await program("./stdio-server.ts", import.meta.url);
  const run = (...flags: string[]) =>
    spawn(process.execPath, [served, "--transport", "http", ...flags], {
      stdio: ["ignore", "pipe", "pipe"],
    });

  it("serves with TLS over a unix socket too, and ends at a signal", async () => {
    const unixSocket = join(folder, "s");
    const child = run(
      "--unix-socket",
      unixSocket,
      "--tls-cert",
      pemPath("first.cert"),
      "--tls-key",
      pemPath("first.key"),
    );
    const ended = once(child, "exit");
    const client = createClient({
      servers: { shop: { url: "https://localhost/mcp", socketPath: unixSocket, ca: FIRST.cert } },
    });
    const add = async (): Promise<string> => renderText((await client.callTool("shop", "add", { a: 2, b: 3 })).content);
    await expect.poll(() => add().catch(String), { timeout: 15_000, interval: 100 }).toBe("5");
    await client.close();
    child.kill("SIGTERM");
    expect(await ended).toEqual([0, null]);
  });
  it("says in one line which file it cannot use", async () => {
    const child = run("--tls-cert", "no.pem", "--tls-key", "no.key");
    let stderr = "";
    child.stderr.on("data", (part) => {
      stderr += part;
    });
    expect(await once(child, "close")).toEqual([1, null]);
    expect(stderr).toBe("shop: tls.certFile no.pem does not exist\n");
  });
  it("--help shows the flags", async () => {
    const child = run("--help");
    let stdout = "";
    child.stdout.on("data", (part) => {
      stdout += part;
    });
    expect(await once(child, "close")).toEqual([0, null]);
    expect(stdout).toContain("--unix-socket <file>");
  });
});
