import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { program } from "../../../../test/programs.ts";
import { createSigningKey, openSigningKey, publicJwks, publicPem, saveSigningKey, signingKeyFiles } from "./index.ts";

function place(): string {
  const home = mkdtempSync(join(tmpdir(), "tenon-open-key-"));
  onTestFinished(() => rmSync(home, { recursive: true, force: true }));
  return join(home, "data", "signing-key.pem");
}

describe("the signing key in a file", () => {
  it("is made once, for its owner only, with its public half beside it", async () => {
    const path = place();
    const key = await openSigningKey(path);
    expect((await openSigningKey(path)).publicJwk).toEqual(key.publicJwk);
    expect(key.algorithm).toBe("ES256");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const folder = dirname(path);
    expect(readdirSync(folder).sort()).toEqual(["signing-key.jwks.json", "signing-key.pem", "signing-key.public.pem"]);
    const read = (name: string): string => readFileSync(join(folder, name), "utf8");
    expect(JSON.parse(read("signing-key.jwks.json"))).toEqual(publicJwks(key));
    expect(read("signing-key.public.pem")).toBe(publicPem(key));
  });

  it("is one that was saved before, and files beside it that hold more stay", async () => {
    const path = place();
    const key = await createSigningKey({ algorithm: "EdDSA" });
    const { jwks } = saveSigningKey(key, path);
    const both = JSON.stringify(publicJwks(key, await createSigningKey()));
    writeFileSync(jwks, both);
    expect((await openSigningKey(path)).publicJwk).toEqual(key.publicJwk);
    expect(readFileSync(jwks, "utf8")).toBe(both);
  });

  it("that was deleted is replaced, and so are the public files that were left of it", async () => {
    const path = place();
    const old = await openSigningKey(path);
    rmSync(path);
    const key = await openSigningKey(path);
    expect(key.kid).not.toBe(old.kid);
    const { jwks, publicKey } = signingKeyFiles(path);
    expect(JSON.parse(readFileSync(jwks, "utf8"))).toEqual(publicJwks(key));
    expect(readFileSync(publicKey, "utf8")).toBe(publicPem(key));
  });

  it("is the same for all who open it first at the same moment, in one process and in several", async () => {
    const path = place();
    const here = await Promise.all(Array.from({ length: 8 }, () => openSigningKey(path)));
    expect(new Set(here.map(({ kid }) => kid)).size).toBe(1);

    const other = place();
    const opener = await program("../../test/key-opener.ts", import.meta.url);
    const there = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const child = spawn(process.execPath, [opener, other]);
        let said = "";
        child.stdout.on("data", (data) => {
          said += data;
        });
        const code = await new Promise((resolve) => child.once("close", resolve));
        return `${code} ${said}`;
      }),
    );
    expect(new Set(there)).toEqual(new Set([`0 ${(await openSigningKey(other)).kid}`]));
    expect(readdirSync(dirname(other))).toHaveLength(3);
  }, 60_000);

  it("is refused when others may read it, or when it cannot be made", async () => {
    const path = place();
    await openSigningKey(path);
    chmodSync(path, 0o644);
    await expect(openSigningKey(path)).rejects.toMatchObject({ code: "signing_key_exposed" });
    const below = join(path, "key.pem"); // a file is no directory
    await expect(openSigningKey(below)).rejects.toMatchObject({ code: "signing_key_unwritable" });
  });
});
