// Packs the packages as they would be published, installs them into an empty project, type-checks and runs the README's
// example there: `npm run test:tarballs`.
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const project = mkdtempSync(join(tmpdir(), "tenon-tarballs-"));
let passed = 0;
let failed = 0;

function run(command, args, cwd) {
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8" });
  return { ok: status === 0, out: stdout, all: `${stdout}${stderr}` };
}

function check(what, ok, detail = "") {
  if (ok) passed += 1;
  else failed += 1;
  console.log(`${ok ? "✓" : "✗"} ${what}${ok ? "" : `\n${detail}`}`);
}

try {
  const tarballs = [];
  for (const name of readdirSync(join(root, "packages"))) {
    const { private: hidden } = JSON.parse(readFileSync(join(root, "packages", name, "package.json"), "utf8"));
    if (hidden) continue;
    const packed = run("npm", ["pack", "--silent", "--pack-destination", project], join(root, "packages", name));
    check(`${name} packs`, packed.ok, packed.all);
    const tarball = packed.out.trim();
    tarballs.push(`./${tarball}`);
    const files = new Set(run("tar", ["-tf", join(project, tarball)]).out.split("\n"));
    const left = [...files].filter((file) => {
      const declared = /^package\/dist\/(.*)\.d\.ts(?:\.map)?$/.exec(file)?.[1];
      return file.endsWith(".tsbuildinfo") || (declared !== undefined && !files.has(`package/src/${declared}.ts`));
    });
    check(`${name} holds nothing of earlier builds`, files.size > 5 && left.length === 0, left.join("\n"));
  }
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "newcomer", private: true, type: "module" }));
  writeFileSync(join(project, ".npmrc"), "engine-strict=true\nfund=false\naudit=false\n");
  const wanted = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).devDependencies;
  const tools = ["tsx", "typescript", "@types/node"].map((name) => `${name}@${wanted[name]}`);
  const agent = ["langchain@1.5.14", "@langchain/core@1.4.0", "@langchain/langgraph@1.7.3"];
  const install = run("npm", ["install", ...tarballs, "zod@4", ...tools, ...agent], project);
  check("they install together, engines strict", install.ok, install.all);

  for (const file of ["server.ts", "client.ts"]) cpSync(join(root, "examples/first-steps", file), join(project, file));
  writeFileSync(
    join(project, "surface.ts"),
    `import { createServer } from "@tenon/server";
import { createClient } from "@tenon/client";
import { mcpTools, resolveModel } from "@tenon/agent";
import { signToken } from "@tenon/server/development";
import { openTelemetry } from "@tenon/telemetry";
import { ConfigError } from "@tenon/core";
console.log([createServer, createClient, mcpTools, resolveModel, signToken, openTelemetry, ConfigError].every((one) => typeof one === "function"));
`,
  );
  writeFileSync(
    join(project, "tsconfig.json"),
    JSON.stringify({
      compilerOptions: {
        module: "nodenext",
        target: "es2022",
        lib: ["es2023", "esnext.disposable"],
        strict: true,
        noEmit: true,
        skipLibCheck: false,
        types: ["node"],
      },
      include: ["server.ts", "client.ts", "surface.ts"],
    }),
  );
  const types = run("npx", ["tsc", "-p", "."], project);
  // only complaints about our own declarations count: other packages' are their own business
  const ours = types.all
    .split("\n")
    .filter((line) => /error TS/.test(line) && (/@tenon\//.test(line) || !/node_modules/.test(line)));
  check("a stranger's compiler is content with our types", ours.length === 0, ours.join("\n"));

  const example = run("node", ["--import", "tsx", "client.ts"], project);
  check(
    "the README's example prints what it says",
    example.out === "asked: Refund ORD-001?\nanswer: ORD-001 refunded\n",
    example.all,
  );
  const surface = run("node", ["--import", "tsx", "surface.ts"], project);
  check("all packages load", surface.out === "true\n", surface.all);

  run("npx", ["tenon", "keys", "new"], project);
  const token = run(
    "npx",
    ["tenon", "token", "--subject", "alice", "--audience", "http://127.0.0.1:8000/mcp"],
    project,
  );
  check("the command line makes a key and a token", /^[\w-]+\.[\w-]+\.[\w-]+\n$/.test(token.out), token.all);
  // a client is checked by the library of the authorization server, so that one has been loaded
  const server = run("npx", ["tenon", "auth-server", "--port", "0", "--client", "a=javascript:x"], project);
  check("the authorization server is complete", /a client is not valid/.test(server.all), server.all);
} finally {
  rmSync(project, { recursive: true, force: true });
}
console.log(`\n${passed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
