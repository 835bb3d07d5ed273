// A stand-in for an agent of Consul: the parts of its HTTP API that servers and clients of ours use, with blocking queries, health by
// TTL or by a state that the test sets, and outages.
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

type Json = Record<string, unknown>;

/** An instance as it was registered. */
export interface Instance {
  readonly ID: string;
  readonly Name: string;
  readonly Address?: string;
  readonly Port?: number;
  readonly Tags?: readonly string[];
  readonly Meta?: Readonly<Record<string, string>>;
  readonly Check?: Readonly<Record<string, unknown>>;
}

export interface ConsulStub {
  readonly url: string;
  /** What is registered now, by id. */
  readonly instances: ReadonlyMap<string, Instance>;
  /** `method path?query` of every request so far. */
  readonly requests: readonly string[];
  /** Tokens that came, one a request; undefined for none. */
  readonly tokens: readonly (string | undefined)[];
  /** Questions that wait for a change. */
  readonly waiting: number;
  /** The state of an instance's check. */
  status(id: string): "passing" | "critical" | undefined;
  /** Registers an instance whose check passes. */
  add(instance: Instance): void;
  remove(id: string): void;
  setHealth(id: string, passing: boolean): void;
  /** The agent begins anew: it forgets everything, and its index starts from 1. */
  forget(): void;
  /** Answers everything with this status, or cuts it off (`"cut"`); undefined: it is well again. */
  fail(how: number | "cut" | undefined): void;
  /** Says this to the next questions about health instead of the truth; undefined: the truth. */
  say(body: unknown): void;
  close(): Promise<void>;
}

async function bodyOf(req: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of req) chunks.push(chunk);
  const text = Buffer.concat(chunks).toString();
  return text === "" ? {} : (JSON.parse(text) as Json);
}

/** An agent on 127.0.0.1. @param token it wants, where it wants one */
export async function consulStub(token?: string): Promise<ConsulStub> {
  const instances = new Map<string, Instance>();
  const passing = new Map<string, boolean>();
  const requests: string[] = [];
  const tokens: (string | undefined)[] = [];
  const waiting = new Set<() => void>();
  let index = 1;
  let failing: number | "cut" | undefined;
  let said: unknown;

  const changed = () => {
    index++;
    for (const wake of [...waiting]) wake();
  };
  const add = (instance: Instance, isPassing: boolean) => {
    instances.set(instance.ID, instance);
    passing.set(instance.ID, isPassing);
    changed();
  };
  const remove = (id: string): boolean => {
    passing.delete(id);
    const had = instances.delete(id);
    if (had) changed();
    return had;
  };
  const json = (res: ServerResponse, body: unknown, headers: Record<string, string> = {}) =>
    res.writeHead(200, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

  const health = async (service: string, url: URL, res: ServerResponse) => {
    const seen = Number(url.searchParams.get("index") ?? 0);
    const wait = Number.parseInt(url.searchParams.get("wait") ?? "300000", 10);
    if (seen > 0 && seen === index) {
      await new Promise<void>((resolve) => {
        const done = () => {
          clearTimeout(timer);
          waiting.delete(done);
          resolve();
        };
        const timer = setTimeout(done, wait);
        waiting.add(done);
        res.on("close", done);
      });
    }
    if (failing === "cut") return void res.socket?.destroy();
    const only = url.searchParams.has("passing");
    const tag = url.searchParams.get("tag");
    const found = [...instances.values()].filter(
      ({ ID, Name, Tags = [] }) =>
        Name === service && (!only || passing.get(ID)) && (tag === null || Tags.includes(tag)),
    );
    const body = found.map((instance) => ({
      Node: { Node: "n1", Address: "127.0.0.1" },
      Service: { Service: instance.Name, Address: "", Port: 0, Meta: {}, ...instance },
      Checks: [],
    }));
    json(res, said ?? body, { "x-consul-index": String(index) });
  };

  const handle = async (req: IncomingMessage, res: ServerResponse) => {
    const url = new URL(req.url ?? "/", "http://consul");
    requests.push(`${req.method} ${url.pathname}${url.search}`);
    const given = req.headers["x-consul-token"];
    tokens.push(typeof given === "string" ? given : undefined);
    const body = await bodyOf(req);
    if (failing === "cut") return void res.socket?.destroy();
    if (failing !== undefined) return void res.writeHead(failing).end("the stub is out of order");
    if (token !== undefined && given !== token) return void res.writeHead(403).end("Permission denied");
    const [, id = ""] = /\/([^/]+)$/.exec(url.pathname) ?? [];
    const name = decodeURIComponent(id);
    if (url.pathname.startsWith("/v1/health/service/")) return health(name, url, res);
    if (url.pathname === "/v1/agent/service/register") {
      const instance = body as unknown as Instance; // what servers of ours send
      const { Status } = instance.Check ?? {};
      add(instance, Status === "passing" || instance.Check === undefined);
      return json(res, "");
    }
    if (url.pathname.startsWith("/v1/agent/service/deregister/")) {
      return remove(name) ? json(res, "") : void res.writeHead(404).end(`Unknown service ID "${name}"`);
    }
    if (url.pathname.startsWith("/v1/agent/check/")) {
      const service = name.replace(/^service:/, "");
      const [, verb] = /\/v1\/agent\/check\/(pass|fail|warn|update)\//.exec(url.pathname) ?? [];
      if (!instances.has(service)) return void res.writeHead(404).end(`Unknown check ID "${name}"`);
      const now = verb === "pass" || body.Status === "passing";
      if (passing.get(service) !== now) {
        passing.set(service, now);
        changed();
      }
      return json(res, "");
    }
    if (url.pathname.startsWith("/v1/agent/service/")) {
      const instance = instances.get(name);
      return instance ? json(res, instance) : void res.writeHead(404).end("unknown service ID");
    }
    res.writeHead(404).end();
  };

  const server = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    instances,
    requests,
    tokens,
    get waiting() {
      return waiting.size;
    },
    status: (id) => (passing.has(id) ? (passing.get(id) ? "passing" : "critical") : undefined),
    add: (instance) => add(instance, true),
    remove: (id) => void remove(id),
    setHealth: (id, now) => {
      passing.set(id, now);
      changed();
    },
    forget: () => {
      instances.clear();
      passing.clear();
      index = 0;
      changed();
    },
    fail: (how) => {
      failing = how;
      for (const wake of how === undefined ? [] : [...waiting]) wake();
    },
    say: (body) => {
      said = body;
      changed();
    },
    close: async () => {
      for (const wake of [...waiting]) wake();
      await new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
}
