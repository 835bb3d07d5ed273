// biome-ignore-all lint/suspicious/noTemplateCurlyInString: these are texts of files
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { newContractKey, writeContractKeys } from "@tenon/core/contract";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createClient } from "../client.ts";
import { CHOICES } from "../options.ts";
import { loadConfig, type ParseOptions, parseConfig } from "./index.ts";
import { ALL_KEYS, TOP_FOREIGN, TOP_KEYS } from "./keys.ts";

const env = { TOKEN: "secret", EMPTY: "" };
const parse = (text: string, options: ParseOptions = {}) =>
  parseConfig(text, { env, file: "/project/mcp.json", ...options });
const one = async (entry: unknown, options: ParseOptions = {}) =>
  (await parse(JSON.stringify({ mcpServers: { x: entry } }), options)).servers.x;

/** Files people have, with what they mean here. */
const KEYS = writeContractKeys([newContractKey({ kid: "k", alg: "HS256" })]);
const SAMPLES: [what: string, text: string, servers: unknown, options?: ParseOptions][] = [
  [
    "a contract whose keys are in the environment",
    '{ "mcpServers": { "kb": { "url": "https://a.b/mcp", "contract": { "keys": "${KEYS}", "context": { "user_id": "ann" } } } } }',
    { kb: { url: "https://a.b/mcp", contract: { keys: KEYS, context: { user_id: "ann" } } } },
    { env: { KEYS } },
  ],
  [
    "Claude Desktop",
    `{ "mcpServers": { "filesystem": { "command": "npx", "args": ["-y", "server-filesystem", "/tmp"], "env": { "A": "1" } } },
       "globalShortcut": "Ctrl+Space" }`,
    { filesystem: { command: "npx", args: ["-y", "server-filesystem", "/tmp"], env: { A: "1" } } },
  ],
  [
    "Cursor, with comments, trailing commas and variables",
    `// my servers
    {
      "mcpServers": {
        /* remote */
        "github": { "url": "https://example.com/mcp", "headers": { "Authorization": "Bearer \${env:TOKEN}", }, },
        "local": { "type": "stdio", "command": "python", "args": ["\${workspaceFolder}/s.py"], "envFile": "/dev/null" },
      },
    }`,
    {
      github: { url: "https://example.com/mcp", headers: { Authorization: "Bearer secret" } },
      local: { command: "python", args: ["/project/s.py"] },
    },
  ],
  [
    "VS Code",
    `{ "inputs": [{ "type": "promptString", "id": "key", "description": "API key", "password": true }],
       "servers": { "api": { "type": "http", "url": "https://example.com/mcp", "headers": { "X-Key": "\${input:key}" } },
                    "fs": { "type": "stdio", "command": "node", "args": ["\${workspaceFolderBasename}"], "dev": { "watch": "x" } } } }`,
    {
      api: { url: "https://example.com/mcp", headers: { "X-Key": "typed" } },
      fs: { command: "node", args: ["project"] },
    },
    { input: () => "typed" },
  ],
  [
    "servers that run several times",
    `{ "routing": { "breaker": { "failures": 20, "rate": { "threshold": 0.5 } }, "prewarm": true },
       "registry": { "type": "consul", "url": "http://127.0.0.1:8500", "token": "\${TOKEN}" },
       "mcpServers": {
         "kb": { "replicas": ["https://a.example/mcp", { "url": "https://b.example/mcp", "id": "b", "capabilities": ["tools.execute"] }],
                 "resource": "https://kb.example/mcp", "breaker": false },
         "orders": { "type": "http", "service": "orders", "origins": ["https://*.orders.example"], "headers": { "X-Key": "\${TOKEN}" } } } }`,
    {
      kb: {
        replicas: ["https://a.example/mcp", { url: "https://b.example/mcp", id: "b", capabilities: ["tools.execute"] }],
        resource: "https://kb.example/mcp",
        breaker: false,
      },
      orders: { service: "orders", origins: ["https://*.orders.example"], headers: { "X-Key": "secret" } },
    },
  ],
  ["VS Code's settings", `{ "mcp": { "servers": { "a": { "command": "node" } } } }`, { a: { command: "node" } }],
  [
    "Windsurf and Gemini",
    `{ "mcpServers": { "w": { "serverUrl": "https://example.com/a" }, "g": { "httpUrl": "https://example.com/b", "timeout": 5000, "trust": true } } }`,
    { w: { url: "https://example.com/a" }, g: { url: "https://example.com/b", timeoutMs: 5_000 } },
  ],
  [
    "auth of every kind",
    `{ "mcpServers": {
       "bearer": { "url": "https://example.com/a", "auth": { "type": "bearer", "token": "\${TOKEN}" } },
       "program": { "url": "https://example.com/b", "auth": { "type": "clientCredentials", "clientId": "c", "clientSecret": "\${TOKEN}",
                    "scopes": ["read"], "issuer": "https://id.example.com" } },
       "person": { "url": "https://example.com/c", "auth": { "type": "oauth", "store": "tokens.json", "dpop": true } },
       "platform": { "url": "https://example.com/d", "auth": { "type": "workloadIdentity", "tokenFile": "/var/run/token" } },
       "cursor": { "url": "https://example.com/e", "auth": { "CLIENT_ID": "c", "CLIENT_SECRET": "s", "scopes": ["read"] } } } }`,
    {
      bearer: { url: "https://example.com/a", auth: { kind: "bearer", open: expect.any(Function) } },
      program: { url: "https://example.com/b", auth: { kind: "clientCredentials", open: expect.any(Function) } },
      person: { url: "https://example.com/c", auth: { kind: "oauth", open: expect.any(Function) } },
      platform: { url: "https://example.com/d", auth: { kind: "workloadIdentity", open: expect.any(Function) } },
      cursor: { url: "https://example.com/e", auth: { kind: "oauth", open: expect.any(Function) } },
    },
  ],
  [
    "Cline",
    `{ "mcpServers": { "c": { "command": "node", "args": ["x"], "disabled": false, "autoApprove": ["a"], "alwaysAllow": [] } } }`,
    { c: { command: "node", args: ["x"] } },
  ],
  [
    "programs that choose tools",
    `{ "mcpServers": { "a": { "command": "x", "disabledTools": ["rm"], "enabledTools": [] },
                       "b": { "command": "x", "includeTools": ["get_a"], "include": [{ "readOnly": true }] } } }`,
    { a: { command: "x", exclude: ["rm"] }, b: { command: "x", include: [{ readOnly: true }, "get_a"] } },
  ],
  [
    "YAML",
    `# servers\nmcpServers:\n  order:\n    url: http://127.0.0.1:8030/mcp\n    headers: { X-A: "\${EMPTY:-none}" }\n    grants: { tools: [query_*], effects: [readOnly, openWorld] }\n    expectHosts: ["*.example.com"]\n`,
    {
      order: {
        url: "http://127.0.0.1:8030/mcp",
        headers: { "X-A": "none" },
        grants: { tools: ["query_*"], effects: ["readOnly", "openWorld"] },
        expectHosts: ["*.example.com"],
      },
    },
    { file: "/project/tenon.yaml" },
  ],
  [
    "a sandboxed server and old transports' words",
    `{ "mcpServers": { "b": { "command": "node", "env": { "PORT": 1, "DEBUG": true, "GONE": null }, "cwd": "sub",
                              "sandbox": { "container": "docker", "image": "node:22", "mounts": [{ "source": "/a", "target": "/a" }] } },
                       "s": { "type": "sse", "url": "https://example.com/sse" }, "h": { "transport": "streamable-http", "url": "https://example.com/" } } }`,
    {
      b: {
        command: "node",
        env: { PORT: "1", DEBUG: "true" },
        cwd: "/project/sub",
        sandbox: { container: "docker", image: "node:22", mounts: [{ source: "/a", target: "/a" }] },
      },
      s: { url: "https://example.com/sse" },
      h: { url: "https://example.com/" },
    },
  ],
];

describe("a configuration file", () => {
  it.each(SAMPLES)("of %s works as it is", async (_, text, servers, options) => {
    const config = await parse(text, options);
    expect(config.servers).toEqual(servers);
    expect(config.warnings).toEqual([]);
    await createClient(config.client).close();
  });

  it("leaves disabled servers alone, variables and all", async () => {
    const text =
      '{ "mcpServers": { "a": { "url": "${NOWHERE}", "disabled": true }, "b": { "command": "x", "enabled": false }, "c": { "command": "x" } } }';
    const config = await parse(text);
    expect(config.disabled).toEqual(["a", "b"]);
    expect(Object.keys(config.servers)).toEqual(["c"]);
  });

  it("says more to createClient than its servers", async () => {
    const { client } = await parse('{ "mcpServers": {}, "pin": "tenon.lock", "naming": "plain", "logLevel": "debug" }');
    expect(client).toEqual({ servers: {}, pin: { file: "/project/tenon.lock" }, naming: "plain", logLevel: "debug" });
    const { client: strict } = await parse(
      '{ "mcpServers": {}, "pin": { "file": "/x.lock", "onFirstUse": "refuse" } }',
    );
    expect(strict.pin).toEqual({ file: "/x.lock", onFirstUse: "refuse" });
  });

  it("may name a server __proto__", async () => {
    const config = await parse('{ "mcpServers": { "__proto__": { "command": "x" } } }');
    expect(Object.keys(config.servers)).toEqual(["__proto__"]);
  });
});

describe("variables", () => {
  it.each([
    ["${TOKEN}", "secret"],
    ["Bearer ${env:TOKEN}!", "Bearer secret!"],
    ["${NOPE:-a:-b}", "a:-b"],
    ["${NOPE:-}", ""],
    ["${EMPTY}", ""],
    ["${EMPTY:-x}", "x"],
    ["$TOKEN $${TOKEN} $5", "$TOKEN ${TOKEN} $5"],
    ["${TOKEN}${TOKEN}", "secretsecret"],
    ["${userHome}/x", `${homedir()}/x`],
  ])("%s is %s", async (text, value) => {
    expect(await one({ command: "x", args: [text] })).toEqual({ command: "x", args: [value] });
  });
  it("that hold something like a variable are not looked into", async () => {
    expect(await one({ command: "x", args: ["${A}"] }, { env: { A: "${TOKEN}" } })).toMatchObject({
      args: ["${TOKEN}"],
    });
  });
  it("are asked for once, and fall back to their default", async () => {
    const asked: unknown[] = [];
    const inputs = [
      { id: "a", type: "promptString", description: "The key", password: true },
      { id: "b", type: "pickString", options: ["x", { label: "Y", value: "y" }], default: "x" },
    ];
    const servers = { s: { command: "c", args: ["${input:a}", "${input:a}", "${input:b}"] } };
    const config = await parse(JSON.stringify({ inputs, servers }), {
      input: (input) => {
        asked.push(input);
        return input.id === "a" ? "typed" : undefined;
      },
    });
    expect(config.servers.s).toMatchObject({ args: ["typed", "typed", "x"] });
    expect(asked).toEqual([
      { id: "a", type: "promptString", description: "The key", password: true },
      { id: "b", type: "pickString", options: ["x", "y"], default: "x" },
    ]);
  });
});

/** Files that are wrong, with the message a person needs. */
const WRONG: [text: string, message: string, schemaKnows?: false][] = [
  [
    '{\n "mcpServers": {\n  "a": { "command": "x",\n   "env": { "K": "${TOKE}" } } } }',
    "/project/mcp.json:4: mcpServers.a.env.K uses ${TOKE}, but the environment has no TOKE; set it, or write ${TOKE:-default} (did you mean TOKEN?)",
    false,
  ],
  [
    '{ "mcpServers": { "a": { "command": "x", "args": ["${config:x}"] } } }',
    "mcpServers.a.args[0] uses ${config:x}, which is no variable",
    false,
  ],
  [
    '{ "inputs": [{ "id": "key" }], "servers": { "a": { "command": "${input:keyy}" } } }',
    '"inputs" has no "keyy"; did you mean "key"?',
    false,
  ],
  [
    '{ "inputs": [{ "id": "key", "description": "API key" }], "servers": { "a": { "command": "${input:key}" } } }',
    "needs a value for ${input:key} (API key), and nobody gave one",
    false,
  ],
  [
    '{\n "mcpServers": {\n  "a": {\n   "comand": "x" } } }',
    '/project/mcp.json:4: mcpServers.a.comand is no known key; did you mean "command"?',
  ],
  [
    '{ "registry": { "type": "consl", "url": "http://a" }, "mcpServers": {} }',
    'registry.type is "consl"; did you mean "consul"?',
  ],
  [
    '{ "registry": {\n "type": "consul", "urll": "http://a" }, "mcpServers": {} }',
    '/project/mcp.json:1: registry: consulRegistry(options) has no option "urll"; did you mean "url"?',
  ],
  ['{ "registry": { "type": "file", "path": "" }, "mcpServers": {} }', "registry: path must be a text"],
  [
    '{ "routing": { "prewarn": true }, "mcpServers": {} }',
    'routing: routing has no option "prewarn"; did you mean "prewarm"?',
  ],
  ['{ "mcpServers": { "a": { "replicas": [] } } }', "mcpServers.a.replicas must be a list of at least one address"],
  [
    '{ "mcpServers": { "a": { "service": "a", "headers": { "X-Key": "1" } } } }',
    "has headers, which would be sent to whatever address the registry names",
    false,
  ],
  ['{ "mcpservers": {} }', 'mcpservers is no known key; did you mean "mcpServers"?'],
  ['{ "mcpServers": { "a": { "url": "https://example.com", "headrs": {} } } }', 'did you mean "headers"?'],
  ['{ "mcpServers": { "a": {} } }', "mcpServers.a needs a command (a program to start) or a url (a server to reach)"],
  ['{ "mcpServers": { "a": { "command": "x", "url": "https://example.com" } } }', "has both command and url"],
  [
    '{ "mcpServers": { "a": { "type": "htpp", "url": "https://example.com" } } }',
    'mcpServers.a.type is "htpp"; did you mean "http"?',
  ],
  [
    '{ "mcpServers": { "a": { "url": "https://example.com", "auth": { "type": "oaut" } } } }',
    'mcpServers.a.auth.type is "oaut"; did you mean "oauth"?',
  ],
  [
    '{ "mcpServers": { "a": { "url": "https://example.com", "auth": { "type": "oauth", "redirectUri": "x" } } } }',
    'mcpServers.a.auth.redirectUri is no known key; did you mean "redirectUrl"?',
  ],
  [
    '{ "mcpServers": { "a": { "url": "https://example.com", "auth": { "type": "bearer" } } } }',
    'mcpServers.a.auth needs a text "token", got undefined',
  ],
  [
    '{ "mcpServers": { "a": { "url": "https://example.com",\n "auth": { "type": "oauth",\n "scopes": ["a b"] } } } }',
    "/project/mcp.json:3: mcpServers.a.auth.scopes is not usable: oauth(options).scopes must be a list of scopes",
  ],
  [
    '{ "mcpServers": { "a": { "url": "https://example.com", "auth": { "type": "clientCredentials", "clientId": "c" } } } }',
    'mcpServers.a.auth needs a text "clientSecret", got undefined',
  ],
  [
    '{ "mcpServers": { "a": { "url": "http://example.com", "auth": { "type": "bearer", "token": "x" } } } }',
    "mcpServers.a.auth would send a token unencrypted to example.com",
    false,
  ],
  ['{ "mcpServers": { "a": { "type": "http", "command": "x" } } }', 'has type "http" and needs a url', false],
  [
    '{ "mcpServers": { "a": { "url": "ftp://example.com" } } }',
    "mcpServers.a.url must be an http or https address",
    false,
  ],
  [
    '{ "mcpServers": { "a": { "url": "https://example.com", "headers": { "X": {} } } } }',
    "mcpServers.a.headers.X must be a text, got {}",
  ],
  ['{ "mcpServers": { "a": { "command": "x", "args": "y" } } }', 'mcpServers.a.args must be a list of texts, got "y"'],
  [
    '{ "mcpServers": { "a": { "command": "x", "timeout": "5s" } } }',
    'mcpServers.a.timeout must be a positive number of milliseconds, got "5s"',
  ],
  [
    '{ "mcpServers": { "a": { "command": "x", "disabled": "yes" } } }',
    'mcpServers.a.disabled must be true or false, got "yes"',
  ],
  [
    '{ "mcpServers": { "a": { "command": "x",\n "grants": { "effects": ["readonly"] } } } }',
    '/project/mcp.json:2: mcpServers.a.grants.effects has "readonly"; did you mean "readOnly"?',
  ],
  ['{ "mcpServers": { "a": { "command": "x", "sandbox": { "image": "x" } } } }', "mcpServers.a.sandbox.image needs"],
  [
    '{ "mcpServers": { "a": { "command": "x", "envFile": "/nowhere/.env" } } }',
    "mcpServers.a.envFile names a file that cannot be read",
    false,
  ],
  ['{ "mcpServers": { "a b": { "command": 5 } } }', '["a b"]'],
  ['{ "mcpServers": [] }', "mcpServers must be an object of servers, got []"],
  ['{ "mcpServers": { "a": "npx x" } }', "mcpServers.a must be an object with command or url"],
  ['{ "mcpServers": { "a": { "command": "x" }, "a": { "command": "y" } } }', "mcpServers.a is there twice", false],
  [
    '{ "mcpServers": { "a": { "command": "x" } }, "servers": { "a": { "command": "y" } } }',
    "servers.a names a server that stands under mcpServers too",
    false,
  ],
  ['{ "mcpServers": {}, "pin": 5 }', "pin must be the path of a lock file, got 5"],
  ['{ "mcpServers": {}, "naming": "short" }', "naming must be one of prefixed, plain"],
  ['{\n  "mcpServers": {\n', "/project/mcp.json:3: is no JSON"],
  ['{ "mcpServers": { "a": { \'command\': 1 } } }', "is no JSON"],
  ["[1]", "must be an object with mcpServers"],
  ["", "is no JSON: "],
];

describe("a wrong configuration", () => {
  it.each(WRONG)("%s is an error with file, line and key", async (text, message) => {
    const error = await parse(text).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ name: "ConfigError", message: expect.stringContaining(message) });
    expect(error).toMatchObject({
      message: expect.stringMatching(/^\/project\/mcp\.json:\d+: /),
      data: { file: "/project/mcp.json" },
    });
  });
  it.each([
    [
      "mcpServers:\n  a:\n    comand: x\n",
      '/project/a.yaml:3: mcpServers.a.comand is no known key; did you mean "command"?',
    ],
    [
      "mcpServers:\n  a:\n    command: x\n  a:\n    command: y\n",
      "/project/a.yaml:4: is no YAML: Map keys must be unique",
    ],
    ["mcpServers: [\n", "/project/a.yaml:"],
    [
      "a: &a [x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c]\n",
      "is no YAML",
    ],
    ["just text", "must be an object with mcpServers"],
  ])("in YAML too: %j", async (text, message) => {
    await expect(parse(text, { file: "/project/a.yaml" })).rejects.toThrow(message);
  });
  it.each([
    [
      '{ "mcpServers": { "a": { "command": "x", "somethingElse": 1 } } }',
      "mcpServers.a.somethingElse is no key this program knows",
    ],
    [
      '{ "mcpServers": { "a": { "command": "npx -y thing" } } }',
      "mcpServers.a.command is one program and is not split at spaces",
    ],
    ['{ "mcpServers": { "a": { "command": "x", "timeout": 60 } } }', "mcpServers.a.timeout is 60 milliseconds"],
    [
      '{ "mcpServers": { "a": { "command": "x", "headers": {} } } }',
      "mcpServers.a.headers has no effect on a server reached by command",
    ],
    ['{ "mcpServers": {}, "whatIsThis": 1 }', "whatIsThis is no key"],
    ["{}", 'has no "mcpServers"'],
  ])("that may be meant is a warning: %s", async (text, message) => {
    const { warnings } = await parse(text);
    expect(warnings).toMatchObject([{ message: expect.stringContaining(message), line: 1 }]);
  });
});

describe("loadConfig", () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), "tenon-config-"));
  });
  afterAll(() => rm(folder, { recursive: true }));
  it("reads a file, its env file and what is relative to its workspace", async () => {
    await mkdir(join(folder, ".vscode"));
    await writeFile(join(folder, ".env"), "A=from file\nB='two words'\n# no\n");
    const entry = { command: "x", envFile: ".env", env: { A: "own" }, cwd: "sub", args: ["${workspaceFolder}"] };
    const path = join(folder, ".vscode", "mcp.json");
    await writeFile(path, `\ufeff${JSON.stringify({ servers: { x: entry } })}`);
    const { servers } = await loadConfig(path);
    expect(servers.x).toEqual({
      command: "x",
      args: [folder],
      env: { A: "own", B: "two words" },
      cwd: join(folder, "sub"),
    });
  });
  it("says which file cannot be read", async () => {
    await expect(loadConfig(join(folder, "none.json"))).rejects.toMatchObject({
      code: "no_config",
      message: expect.stringContaining("none.json"),
    });
  });
});

describe("the published JSON Schema of the file", () => {
  const load = async () =>
    JSON.parse(await readFile(new URL("../../schema/tenon.schema.json", import.meta.url), "utf8"));
  const validator = async () => new Ajv2020({ strict: false, allErrors: true }).compile(await load());
  const jsonOf = async (text: string, file?: string) => {
    const { parseDocumentText } = await import("@tenon/core/internal/document");
    return parseDocumentText(text, file ?? "x.json", undefined, "an object").value;
  };
  it.each(SAMPLES)("accepts what is accepted: %s", async (_, text, __, options) => {
    const validate = await validator();
    validate(await jsonOf(text, options?.file));
    expect(validate.errors ?? []).toEqual([]);
  });
  it.each(WRONG.filter(([text, , knows]) => knows !== false && text.endsWith("}") && !text.includes("'")))(
    "refuses what is refused: %s",
    async (text) => {
      const validate = await validator();
      expect(validate(await jsonOf(text))).toBe(false);
    },
  );
  it("knows every key the program knows", async () => {
    const schema = await load();
    expect(Object.keys(schema.$defs.server.properties)).toEqual(expect.arrayContaining(ALL_KEYS));
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining([...TOP_KEYS, ...TOP_FOREIGN]));
  });
  it.each(Object.entries(CHOICES))("offers the words of %s that the program takes", async (key, words) => {
    expect((await load()).properties[key].enum).toEqual(words);
  });
});

it("an option of loadConfig or parseConfig that nobody reads is an error", async () => {
  await expect(parseConfig("{}", { inputs: () => "x" } as never)).rejects.toThrow('did you mean "input"?');
  await expect(loadConfig("none.json", { enviroment: {} } as never)).rejects.toMatchObject({ code: "unknown_option" });
});
