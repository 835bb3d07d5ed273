import {
  approvals,
  bareLoop,
  contextMeta,
  dispatch,
  MultiServerMCPClient,
  mcpMiddleware,
  mcpTools,
  OfflineModel,
  resolveModel,
  runInteractive,
  searchTools,
  stateContext,
  streamInteractive,
  streamRun,
  withThreadLease,
} from "@tenon/agent";
import { SqliteStore } from "@tenon/agent/sqlite-store";
import { createClient } from "@tenon/client";
import { bearer, clientCredentials, enterpriseManaged, oauth, workloadIdentity } from "@tenon/client/auth";
import { loadConfig, parseConfig } from "@tenon/client/config";
import * as interceptors from "@tenon/client/interceptors";
import * as registries from "@tenon/client/registry";
import { askInTerminal } from "@tenon/client/terminal";
import { createServer, defineTool } from "@tenon/server";
import { app } from "@tenon/server/apps";
import { introspection, jwt } from "@tenon/server/auth";
import { signToken } from "@tenon/server/development";
import { cache, log, matchCaller, rateLimit } from "@tenon/server/middleware";
import { consul } from "@tenon/server/register";
import { skills } from "@tenon/server/skills";
import { connect } from "@tenon/server/testing";
import { openMemory } from "@tenon/store";
import { openStores } from "@tenon/store/open";
import { openPostgres } from "@tenon/store/postgres";
import { openSqlite, openSqliteFile } from "@tenon/store/sqlite";
import { openTelemetry } from "@tenon/telemetry";
import { describe, expect, it, vi } from "vitest";
import { readSurface } from "../scripts/surface.ts";

/** What TypeScript would refuse: an object with a key that nobody reads. */
type Wrong = never;

const server = () => createServer({ name: "s", version: "1" });
const serving = (options: object) => createServer({ name: "s", version: "1", ...options });
const client = (options: object) => createClient({ servers: {}, ...options });
const one = (config: object) => client({ servers: { s: config } });
const tool = (given: Wrong) => server().tool("t", given, () => "");
const transport = () => {
  throw new Error("not connected");
};
const multi = (connection: object) => new MultiServerMCPClient({ mcpServers: { s: connection } } as Wrong);

/** Hands each kind of options, wrong, to whoever takes it. */
const TAKERS: Record<string, (given: Wrong) => unknown> = {
  "@tenon/core RedactRules": interceptors.redactor,
  "@tenon/core TelemetryOptions": (given) => createClient({ servers: {}, telemetry: given }),
  "@tenon/telemetry OpenTelemetryOptions": (given) => openTelemetry(given),
  "@tenon/telemetry OtlpOptions": (given) => openTelemetry({ otlp: given }),
  "@tenon/store AuditExportOptions": (given) => openMemory().audit.export(given),
  "@tenon/store AuditSweepOptions": (given) => openMemory().audit.sweep(given),
  "@tenon/store AuditTailOptions": (given) => openMemory().audit.tail(given),
  "@tenon/store AuditVerifyOptions": (given) => openMemory().audit.verify(given),
  "@tenon/store MemoryOptions": openMemory,
  "@tenon/store/open OpenOptions": openStores,
  "@tenon/store/sqlite SqliteFileOptions": (given) => openSqliteFile(":memory:", given),
  "@tenon/store/sqlite SqliteOptions": openSqlite,
  "@tenon/store/postgres PostgresOptions": openPostgres,
  "@tenon/server AdminOptions": (given) => server().admin(given),
  "@tenon/server CacheHint": (given) => server().resource("a://b", { cache: given }, () => ""),
  "@tenon/server ContractOptions": (given) => serving({ contract: given }),
  "@tenon/server Extension": (given) => server().extension(given),
  "@tenon/server HttpOptions": (given) => serving({ http: given }),
  "@tenon/server ListenOptions": (given) => server().listen(given),
  "@tenon/server PromptOptions": (given) => server().prompt("p", given, () => ""),
  "@tenon/server ResourceOptions": (given) => server().resource("a://b", given, () => ""),
  "@tenon/server RunOptions": async (given) => {
    // it says so and ends the program
    vi.spyOn(process, "exit").mockReturnValue(undefined as Wrong);
    const said = vi.spyOn(process.stderr, "write").mockReturnValue(true);
    await server().run({ url: `file://${process.argv[1]}`, main: true } as Wrong, given);
    const [line] = said.mock.calls[0] ?? [];
    vi.restoreAllMocks();
    throw new Error(String(line).trim());
  },
  "@tenon/server ServerOptions": createServer,
  "@tenon/server TasksOptions": (given) => serving({ tasks: given }),
  "@tenon/server ToolTaskOptions": (given: object) => tool({ task: { use: "optional", ...given } } as Wrong),
  "@tenon/server TlsOptions": (given) => server().listen({ port: 0, tls: given }),
  "@tenon/server ToolOptions": tool,
  "@tenon/server WorkerPoolOptions": (given) => serving({ workers: given }),
  "@tenon/server WorkerToolOptions": (given: object) =>
    server().use(defineTool("t", { worker: new URL("file:///w.js"), ...given })),
  "@tenon/server/auth IntrospectionOptions": introspection,
  "@tenon/server/auth JwtOptions": jwt,
  "@tenon/server/middleware CacheOptions": cache,
  "@tenon/server/middleware LogOptions": log,
  "@tenon/server/middleware MatchCallerOptions": matchCaller,
  "@tenon/server/middleware RateLimitOptions": rateLimit,
  "@tenon/server/testing CallOptions": async (given) => (await connect(server())).callTool("t", {}, given),
  "@tenon/server/testing ConnectOptions": (given) => connect(server(), given),
  "@tenon/server/register ConsulOptions": consul,
  "@tenon/server/skills SkillsOptions": (given) => skills("nowhere", given),
  "@tenon/server/apps AppOptions": (given) => app(server(), given),
  "@tenon/server/apps AppToolOptions": (given) => app(server(), { uri: "ui://a", html: "" }).tool("t", given, () => ""),
  "@tenon/server/development TokenOptions": signToken,
  "@tenon/client BreakerOptions": (given) => one({ url: "http://127.0.0.1:9/mcp", breaker: given }),
  "@tenon/client BreakerRate": (given: object) =>
    one({ url: "http://127.0.0.1:9/mcp", breaker: { rate: { threshold: 0.5, ...given } } }),
  "@tenon/client CallOptions": (given) => one({ transport }).callTool("s", "t", {}, given),
  "@tenon/client ClientEvents": (given) => client({ events: given }),
  "@tenon/client ClientOptions": client,
  "@tenon/client FollowOptions": (given) => one({ transport }).callTool("s", "t", {}, { task: given }),
  "@tenon/client Grants": (given) => one({ transport, grants: given }),
  "@tenon/client HttpServerConfig": (given: object) => one({ url: "http://127.0.0.1:9/mcp", ...given }),
  "@tenon/client Mount": (given) =>
    one({ command: "x", sandbox: { container: "docker", image: "i", mounts: [given] } }),
  "@tenon/client PinOptions": (given) => client({ pin: given }),
  "@tenon/client ReadOptions": (given) => one({ transport }).getPrompt("s", "p", {}, given),
  "@tenon/client ReplicaConfig": (given: object) => one({ replicas: [{ url: "http://127.0.0.1:9/mcp", ...given }] }),
  "@tenon/client ReplicasServerConfig": (given: object) => one({ replicas: ["http://127.0.0.1:9/mcp"], ...given }),
  "@tenon/client ResumeOptions": (given) => one({ transport }).tasks.resume("s", "id", given),
  "@tenon/client RoutingOptions": (given) => client({ routing: given }),
  "@tenon/client Sandbox": (given) => one({ command: "x", sandbox: given }),
  "@tenon/client ServerConfig": one,
  "@tenon/client ServerContract": (given) => one({ transport, contract: given }),
  "@tenon/client ServiceServerConfig": (given: object) => one({ service: "kb", ...given }),
  "@tenon/client StartOptions": (given) => one({ transport }).tasks.start("s", "t", {}, given),
  "@tenon/client StdioServerConfig": (given: object) => one({ command: "x", ...given }),
  "@tenon/client TaskRequestOptions": (given) => one({ transport }).tasks.get("s", "id", given),
  "@tenon/client TransportServerConfig": (given: object) => one({ transport, ...given }),
  "@tenon/client/interceptors AuditOptions": interceptors.audit,
  "@tenon/client/interceptors CacheOptions": interceptors.cache,
  "@tenon/client/interceptors InjectArgsOptions": (given) => interceptors.injectArgs({ a: () => 1 }, given),
  "@tenon/client/interceptors LogOptions": interceptors.log,
  "@tenon/client/interceptors RateLimitOptions": interceptors.rateLimit,
  "@tenon/client/interceptors RedactOptions": interceptors.redact,
  "@tenon/client/interceptors RedactRules": interceptors.redactor,
  "@tenon/client/interceptors RetryOptions": interceptors.retry,
  "@tenon/client/interceptors TimeoutOptions": interceptors.timeout,
  "@tenon/client/auth BearerOptions": (given) => bearer("token", given),
  "@tenon/client/auth ClientCredentialsOptions": clientCredentials,
  "@tenon/client/auth EnterpriseManagedOptions": enterpriseManaged,
  "@tenon/client/auth OAuthOptions": oauth,
  "@tenon/client/auth WorkloadIdentityOptions": workloadIdentity,
  "@tenon/client/config ConfigOptions": (given) => loadConfig("tenon.json", given),
  "@tenon/client/config ParseOptions": (given) => parseConfig("{}", given),
  "@tenon/client/registry ConsulRegistryOptions": registries.consulRegistry,
  "@tenon/client/registry FileRegistryOptions": (given) => registries.fileRegistry("services.json", given),
  "@tenon/client/registry McpRegistryOptions": registries.mcpRegistry,
  "@tenon/client/registry ReplicaConfig": (given: object) =>
    registries.staticRegistry({ kb: [{ url: "http://127.0.0.1:9/mcp", ...given }] }),
  "@tenon/client/terminal AskInTerminalOptions": (given) =>
    askInTerminal({ mode: "form", message: "", fields: [], schema: {} }, given),
  "@tenon/agent ApprovalOptions": (given) => approvals([], {}, given),
  "@tenon/agent ApprovalRule": (given) => approvals([{ name: "t", schema: {} }], { t: given }),
  "@tenon/agent BareLoopOptions": bareLoop,
  "@tenon/agent Callbacks": (given) =>
    new MultiServerMCPClient({ mcpServers: { s: { command: "x" } }, callbacks: given }),
  "@tenon/agent Connection": multi,
  "@tenon/agent ContextMetaOptions": (given) => contextMeta({} as Wrong, given),
  "@tenon/agent DispatchOptions": (given) =>
    dispatch(client({}), [], { id: "1", type: "function", function: { name: "t", arguments: "{}" } }, given),
  "@tenon/agent HttpConnection": (given: object) => multi({ url: "http://127.0.0.1:9/mcp", ...given }),
  "@tenon/agent InteractiveOptions": (given) => runInteractive({} as Wrong, "hi", given),
  "@tenon/agent McpMiddlewareOptions": mcpMiddleware,
  "@tenon/agent McpToolsOptions": (given) => mcpTools(client({}), given),
  "@tenon/agent ModelOptions": (given) => resolveModel("offline", given),
  "@tenon/agent MultiServerConfig": (given: object) =>
    new MultiServerMCPClient({ mcpServers: { s: { command: "x" } }, ...given }),
  "@tenon/agent OfflineRules": (given) => new OfflineModel(given),
  "@tenon/agent SearchToolsOptions": (given) => searchTools([], given),
  "@tenon/agent StateContextOptions": (given) => stateContext({ type: "object" }, given),
  "@tenon/agent StdioConnection": (given: object) => multi({ command: "x", ...given }),
  "@tenon/agent StreamInteractiveOptions": (given) => streamInteractive({} as Wrong, "hi", given).next(),
  "@tenon/agent StreamOptions": (given) => streamRun({} as Wrong, "hi", given),
  "@tenon/agent ThreadLeaseOptions": (given) => withThreadLease(openMemory().leases, "t", async () => 1, given),
  "@tenon/agent/sqlite-store SqlitePutOptions": (given) =>
    new SqliteStore(":memory:").put(["a"], "k", {}, undefined, given),
  "@tenon/agent/sqlite-store SqliteStoreOptions": (given) => new SqliteStore(":memory:", given),
};

/** Options that no user hands over, or whose further keys are other people's. */
const OPEN = new Set([
  "@tenon/core TenonErrorOptions", // the constructor of an error must not fail
  "@tenon/server FetchOptions", // frameworks call `fetch` with arguments of their own behind the request
  "@tenon/client EndpointConfig", // a part of ServerConfig, which is what is taken
  "@tenon/client/config Config", // a result
]);

/** What is taken in the same place, and documented in another. */
const ALSO: Readonly<Record<string, readonly string[]>> = {
  "@tenon/client EndpointConfig": ["replicas", "service", "origins", "resource"], // of ServerConfig
  "@tenon/server ToolOptions": ["worker"], // of WorkerToolOptions
};

/** A key that is like no other. */
const UNKNOWN = "qqqqqqqqqqqqqqqqqqqqqqqqqqqqqq";

async function refusal(attempt: () => unknown): Promise<string> {
  try {
    await attempt();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
  return "nothing was refused";
}

const options = readSurface().flatMap(({ address, exports }) =>
  exports
    .filter(({ isOptions }) => isOptions)
    .map(({ name, fields }) => ({
      name: `${address} ${name}`,
      fields: fields.filter((field) => !field.name.includes(".")).map((field) => field.name),
    })),
);

describe("a typing error in an option is an error that names what was meant", () => {
  it.each(options.filter(({ name }) => !OPEN.has(name)))("in $name", async ({ name, fields }) => {
    const take = TAKERS[name];
    if (!take) throw new Error(`test/options.test.ts does not know who takes ${name}`);
    const message = await refusal(() => take({ [UNKNOWN]: 1 } as Wrong));
    expect(message).toContain(`has no option "${UNKNOWN}"`);
    // what is accepted is what is documented
    const known = /known options: (.+)$/.exec(message)?.[1]?.split(", ") ?? [];
    expect([...new Set(known)].sort()).toEqual([...fields, ...(ALSO[name] ?? [])].sort());
  });
});
