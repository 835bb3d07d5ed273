import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRecord } from "@tenon/core";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { createProgram } from "../apps/after-sales/src/main.ts";
import { read, root } from "./pages.ts";

type Found = Record<string, unknown>;

/** A part of a document by its path; undefined where there is none. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((part, key) => {
    if (Array.isArray(part)) return part[Number(key)];
    return isRecord(part) ? part[key] : undefined;
  }, value);
}
const list = (value: unknown): Found[] => (Array.isArray(value) ? value.filter(isRecord) : []);
const texts = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : []);

/** All source of the program and of what it is made of: whoever reads a variable names it there. */
const sources = ["apps/after-sales/src", "packages/server/src", "packages/store/src"]
  .flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
      .map((file) => readFileSync(join(root, folder, file), "utf8")),
  )
  .join("\n");
/** Variables of Node and of the image of Postgres. */
const OTHERS = new Set(["NODE_EXTRA_CA_CERTS", "POSTGRES_DB", "POSTGRES_USER", "POSTGRES_PASSWORD", "PGDATA"]);

/** What a container is told on its command line, read by the program's own command line. */
function readCommand(words: readonly string[]): { name: string; operands: string[]; flags: Found } {
  const [node, entry, name = "", ...args] = words;
  expect([node, entry]).toEqual(["node", "apps/after-sales/dist/main.js"]);
  const command = createProgram().commands.find((one) => one.name() === name);
  if (!command) throw new Error(`there is no command "${name}"`);
  command.exitOverride();
  const { operands, unknown } = command.parseOptions(args);
  expect(unknown, `options of ${name}`).toEqual([]);
  return { name, operands, flags: { ...command.opts() } };
}

/** @param args may make use of a variable themselves */
function checkVariables(names: readonly string[], args: readonly string[] = []): void {
  const unread = names.filter((name) => !OTHERS.has(name) && !args.includes(`$(${name})`) && !sources.includes(name));
  expect(unread, "variables that nobody reads").toEqual([]);
}

/** Where the agents reach the servers, and the servers' own ports and names. */
function checkAddresses(flags: Found, servers: ReadonlyMap<string, unknown>): void {
  for (const [server, flag] of [
    ["order", "orderUrl"],
    ["notification", "notificationUrl"],
  ] as const) {
    const url = new URL(String(flags[flag]));
    expect(url.protocol, "tokens travel encrypted").toBe("https:");
    expect([url.hostname, Number(url.port), url.pathname]).toEqual([server, servers.get(server), "/mcp"]);
  }
}

const UNTRIED = /^# No container engine has run this file: .*test\/deploy\.test\.ts/;

describe("docs/growing.md", () => {
  const lines = read("docs/growing.md").split("\n");
  const commands = lines.filter((line) => line.startsWith("$after_sales ")).map((line) => line.replace(/ +#.*$/, ""));
  it("shows commands that the program knows, and the variables it reads", () => {
    expect(lines).toContain('after_sales="node apps/after-sales/dist/main.js"');
    const ports: unknown[] = [];
    for (const command of commands) {
      const [, ...words] = command.split(" ");
      const { flags } = readCommand(["node", "apps/after-sales/dist/main.js", ...words]);
      ports.push(...[flags.port, flags.adminPort].filter((port) => port !== undefined));
    }
    expect(commands.length).toBeGreaterThan(5);
    const served = ports.filter((port) => port !== 8030); // shown with workers once more
    expect(new Set(served).size).toBe(served.length);
    checkVariables([...new Set(lines.join("\n").match(/TENON_[A-Z_]+|NODE_[A-Z_]+/g))]);
    const flags = new Set(lines.join("\n").match(/(?<=`)--[a-z-]+/g));
    const known = createProgram().commands.flatMap(({ options }) => options.map(({ long }) => long));
    expect([...flags].filter((flag) => !known.includes(flag))).toEqual([]);
  });
});

describe("docs/deploy/kubernetes.yaml", () => {
  const text = read("docs/deploy/kubernetes.yaml");
  const documents = parseAllDocuments(text);
  const all = documents.map((document) => document.toJS() as Found); // parsed below
  const services = all.filter(({ kind }) => kind === "Service");
  const workloads = all.filter(({ kind }) => kind !== "Service");
  const nameOf = (one: Found): string => String(at(one, "metadata", "name"));
  const containerOf = (one: Found): Found => list(at(one, "spec", "template", "spec", "containers"))[0] ?? {};
  const commandOf = (container: Found) => readCommand([...texts(container.command), ...texts(container.args)]);
  const portOf = (container: Found, name: string): unknown =>
    list(container.ports).find((port) => port.name === name)?.containerPort;

  it("says first that nobody tried it, and is YAML", () => {
    expect(text).toMatch(UNTRIED);
    expect(documents.flatMap(({ errors }) => errors)).toEqual([]);
    const replicas = Object.fromEntries(workloads.map((one) => [nameOf(one), at(one, "spec", "replicas")]));
    expect(replicas).toEqual({ postgres: 1, order: 3, notification: 3, worker: 2, agent: 2 });
  });

  it.each(workloads.map((one) => [nameOf(one), one] as const))(
    "%s runs with few rights and within limits",
    (_, one) => {
      const spec = at(one, "spec", "template", "spec");
      expect(at(spec, "securityContext", "runAsNonRoot")).toBe(true);
      expect(at(spec, "automountServiceAccountToken")).toBe(false);
      const container = containerOf(one);
      expect(container.securityContext).toMatchObject({
        readOnlyRootFilesystem: true,
        allowPrivilegeEscalation: false,
        capabilities: { drop: ["ALL"] },
      });
      for (const what of ["requests", "limits"]) {
        expect(at(container, "resources", what)).toEqual({ cpu: expect.any(String), memory: expect.any(String) });
      }
      for (const variable of list(container.env)) {
        if (/URL|KEYS|PASSWORD|TOKEN/.test(String(variable.name))) expect(variable.value).toBeUndefined();
      }
      const volumes = [...list(at(spec, "volumes")), ...list(at(one, "spec", "volumeClaimTemplates"))];
      const held = volumes.map((volume) => volume.name ?? at(volume, "metadata", "name"));
      for (const mount of list(container.volumeMounts)) expect(held).toContain(mount.name);
      checkVariables(
        list(container.env).map(({ name }) => String(name)),
        texts(container.args),
      );
      // a service finds it, and so does its own controller
      const labels = at(one, "spec", "template", "metadata", "labels");
      expect(at(one, "spec", "selector", "matchLabels")).toEqual(labels);
    },
  );

  it.each(["order", "notification", "worker"])(
    "%s is asked on its admin port whether it lives and takes requests",
    (name) => {
      const container = containerOf(workloads.find((one) => nameOf(one) === name) ?? {});
      const { flags } = commandOf(container);
      expect(flags.adminHost, "the probe comes from another address").toBe("0.0.0.0");
      expect(portOf(container, "admin")).toBe(flags.adminPort);
      expect(at(container, "livenessProbe", "httpGet")).toEqual({ path: "/healthz", port: "admin" });
      expect(at(container, "readinessProbe", "httpGet")).toEqual({ path: "/readyz", port: "admin" });
    },
  );

  it("lets the agents reach the servers where they listen, by a name they answer to", () => {
    const ports = new Map<string, unknown>();
    for (const name of ["order", "notification"]) {
      const container = containerOf(workloads.find((one) => nameOf(one) === name) ?? {});
      const { operands, flags } = commandOf(container);
      const service = services.find((one) => nameOf(one) === name);
      expect(operands).toEqual([name]);
      expect(flags).toMatchObject({ host: "0.0.0.0", allowedHost: [name] });
      expect(portOf(container, "mcp")).toBe(flags.port);
      expect(at(service, "spec", "ports", 0)).toMatchObject({ port: flags.port, targetPort: "mcp" });
      expect(at(service, "spec", "selector")).toEqual({ app: name });
      ports.set(name, flags.port);
    }
    const { name, flags } = commandOf(containerOf(workloads.find((one) => nameOf(one) === "agent") ?? {}));
    expect(name).toBe("chat");
    checkAddresses(flags, ports);
  });
});

describe("docs/deploy/compose.yaml", () => {
  const text = read("docs/deploy/compose.yaml");
  const compose: unknown = parse(text, { merge: true });
  const services = Object.entries(at(compose, "services") as Found).map(([name, one]) => [name, one as Found] as const); // both are maps
  const ours = services.filter(([name]) => name !== "postgres");
  const commandOf = (one: Found) => readCommand(texts(one.command));

  it("says first that nobody tried it, and names every service", () => {
    expect(text).toMatch(UNTRIED);
    expect(services.map(([name]) => name)).toEqual([
      "postgres",
      "order",
      "notification",
      "worker",
      "agent-1",
      "agent-2",
    ]);
    const replicas = ours.map(([, one]) => at(one, "deploy", "replicas") ?? 1);
    expect(replicas).toEqual([3, 3, 2, 1, 1]);
  });

  it.each(ours)("%s runs with few rights, and nothing secret stands in the file", (_, one) => {
    expect(one).toMatchObject({ read_only: true, user: "1000:1000", cap_drop: ["ALL"] });
    expect(at(one, "deploy", "resources", "limits")).toEqual({ cpus: expect.any(String), memory: expect.any(String) });
    const variables = Object.entries(at(one, "environment") as Found); // a map
    checkVariables(variables.map(([name]) => name));
    for (const [name, value] of variables) {
      if (/DATABASE_URL|KEYS|PASSWORD|TOKEN/.test(name)) expect(String(value)).toMatch(/^\$\{\w+:\?/);
    }
    for (const secret of texts(at(one, "secrets"))) expect(at(compose, "secrets", secret)).toBeDefined();
    const { flags } = commandOf(one);
    for (const path of Object.values(flags).filter((value) => String(value).startsWith("/run/secrets/"))) {
      expect(texts(at(one, "secrets"))).toContain(String(path).slice("/run/secrets/".length));
    }
  });

  it("asks servers and workers on their admin port, and lets agents reach the servers", () => {
    const ports = new Map<string, unknown>();
    for (const name of ["order", "notification", "worker"]) {
      const one = ours.find(([other]) => other === name)?.[1] ?? {};
      const { flags } = commandOf(one);
      expect(texts(at(one, "healthcheck", "test")).join(" ")).toContain(`http://127.0.0.1:${flags.adminPort}/readyz`);
      if (name === "worker") continue;
      expect(texts(one.expose)).toEqual([String(flags.port)]);
      expect(flags).toMatchObject({ host: "0.0.0.0", allowedHost: [name] });
      ports.set(name, flags.port);
    }
    const agents = ours.filter(([name]) => name.startsWith("agent"));
    const threads = agents.map(([, one]) => {
      const { flags } = commandOf(one);
      checkAddresses(flags, ports);
      return flags.thread;
    });
    expect(new Set(threads).size).toBe(agents.length);
  });
});
