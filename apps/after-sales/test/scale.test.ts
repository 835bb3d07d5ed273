import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { ConnectionError, META } from "@tenon/core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { openStores } from "../src/database/stores.ts";
import { dataDirectory, ENTRY, openChat, Program, until } from "./desk.ts";
import type { Passed } from "./proxy.ts";
import { roundRobin } from "./proxy.ts";
import { openScene, REPLICAS, type Scene } from "./scale-scene.ts";

const url = process.env.TENON_TEST_DATABASE_URL;
const SMALL = "ORD-001 耳机坏了，请退款";
const LARGE = "ORD-003 屏幕坏了，请退款";

/** The question that was answered at another replica than the one that asked: the answer, and the call before it. */
function answeredElsewhere(passed: readonly Passed[]): boolean {
  const calls = passed.filter(({ method }) => method === "tools/call");
  return calls.some((call, i) => call.answers && calls[i - 1]?.to !== call.to);
}

if (url === undefined) {
  it.skip("the desk on many machines: set TENON_TEST_DATABASE_URL to run it", () => undefined);
} else {
  describe("the desk with three processes a server behind a proxy that remembers nobody", () => {
    const cleanUp: (() => Promise<void>)[] = [];
    let scene: Scene;
    beforeAll(async () => {
      scene = await openScene(url, (work) => void cleanUp.unshift(work));
    }, 120_000);
    afterAll(async () => {
      const problems: unknown[] = [];
      for (const work of cleanUp) await work().catch((problem) => problems.push(problem)); // what began last goes first
      if (problems.length > 0) throw problems[0];
    }, 60_000);

    /** The official client, which speaks 2025-11-25 unless told otherwise. */
    async function connected(address: string, versionNegotiation?: { mode: { pin: string } }): Promise<Client> {
      const client = new Client(
        { name: "official", version: "1.0.0" },
        { ...(versionNegotiation && { versionNegotiation }) },
      );
      onTestFinished(() => client.close());
      const headers = { authorization: `Bearer ${await scene.token()}` };
      await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));
      return client;
    }

    it("made its tables once, although all of them began together", async () => {
      const steps = await scene.query<{ name: string }>("select name from desk_migrations");
      expect(steps).toEqual([{ name: "desk_001" }, { name: "desk_keys_001" }]);
      expect(await scene.query("select id, amount from orders order by id")).toHaveLength(4);
    });

    it("holds the conversations of the desk, and a question is answered at another process than asked it", async () => {
      const chat = scene.agent("whole", onTestFinished);
      chat.say("查询订单ORD-002");
      await chat.sees("500.00 元");
      chat.say(SMALL, "approve");
      await chat.sees("退款已受理成功");
      chat.say(LARGE, "approve", "1");
      await chat.sees("退款已受理成功");
      chat.say("ORD-002、ORD-004 由于产品质量问题，请批量退款");
      await chat.sees("2 个订单中成功 1 个");
      chat.say("给 18812345678 发短信，内容：已退款");
      await chat.sees("18812345678");
      chat.say("退货政策是什么", "quit");
      await chat.sees("无理由退货");
      expect((await chat.ended).code).toBe(0);
      expect(await scene.refunds("ORD-00")).toEqual(["ORD-001", "ORD-002", "ORD-003"]);
      expect(await scene.query("select phone, content, status from sms_outbox")).toEqual([
        { phone: "18812345678", content: "已退款", status: "sent" },
      ]);
      const { passed } = scene.proxies.order;
      expect(new Set(passed.map(({ to }) => to)).size).toBe(REPLICAS);
      expect(answeredElsewhere(passed)).toBe(true);
    });

    it("refunds an order once, whichever processes are asked at the same moment", async () => {
      const ids = Array.from({ length: 20 }, (_, i) => `ORD-${500 + i}`);
      await scene.addOrders(ids, 1234);
      const client = await scene.client(scene.proxies.order.url, onTestFinished);
      const outcomes = await Promise.all(
        [...ids, ...ids, ...ids].map((order_id) =>
          client.callTool("order", "process_refund", { order_id, reason: "r" }),
        ),
      );
      expect(outcomes.filter(({ isError }) => !isError)).toHaveLength(ids.length);
      expect(await scene.refunds("ORD-5")).toEqual(ids);
    });

    it("loses nothing and does nothing twice when one process is killed in the middle", async () => {
      const ids = Array.from({ length: 60 }, (_, i) => `ORD-${600 + i}`);
      await scene.addOrders(ids, 100);
      const doomed = await scene.serve("order");
      const [one, two] = scene.replicas.order;
      const proxy = await roundRobin([doomed.url, one?.url ?? "", two?.url ?? ""]);
      onTestFinished(() => proxy.close());
      const client = await scene.client(proxy.url, onTestFinished);
      let failures = 0;
      /** As a careful caller does it: the same key says that it is the same refund. */
      async function refund(order_id: string): Promise<boolean> {
        for (let attempt = 0; attempt < 10; attempt++) {
          try {
            const meta = { [META.idempotencyKey]: `kill:${order_id}` };
            return !(await client.callTool("order", "process_refund", { order_id, reason: "r" }, { meta })).isError;
          } catch (error) {
            if (!(error instanceof ConnectionError)) throw error;
            failures += 1;
          }
        }
        return false;
      }
      let begun = 0;
      const outcomes = await Promise.all(
        Array.from({ length: 6 }, async (_, lane) => {
          const mine = ids.filter((_id, i) => i % 6 === lane);
          const done: boolean[] = [];
          for (const id of mine) {
            begun += 1;
            if (begun === 20) doomed.program.kill("SIGKILL");
            done.push(await refund(id));
          }
          return done;
        }),
      );
      expect(outcomes.flat().every(Boolean)).toBe(true);
      expect(await scene.refunds("ORD-6")).toEqual(ids);
      expect(failures).toBeLessThan(30);
    });

    it("answers on its admin port for a load balancer, and not on the port of the protocol", async () => {
      const { url, program } = await scene.serve("order", "--admin-port", "0");
      const admin = /admin (http:\S+)/.exec(program.stdout)?.[1] ?? "";
      expect((await fetch(`${admin}/healthz`)).status).toBe(200);
      expect((await fetch(`${admin}/readyz`)).status).toBe(200);
      expect((await fetch(new URL("/readyz", url))).status).toBe(404);
      expect(await (await fetch(`${admin}/metrics`)).text()).toContain('tenon_legacy_sessions{server="orders"} 0');
      expect((await fetch(new URL("/metrics", url))).status).toBe(404);
    });

    it("does not start a process that could not read the others' questions, and changes keys one process after the other", async () => {
      const { TENON_STATE_KEYS: key = "", ...rest } = scene.env;
      const [other, next] = [randomBytes(32), randomBytes(32)].map((bytes) => bytes.toString("base64url"));
      const serve = (keys: string | undefined) => {
        const data = dataDirectory();
        const words = ["serve", "order", "--port", "0", "--data", data, "--lang", "zh"];
        return new Program([process.execPath, ENTRY, ...words], { ...rest, ...(keys && { TENON_STATE_KEYS: keys }) });
      };
      for (const keys of [other, undefined]) {
        const { code, stderr } = await serve(keys).ended; // without, a key of its own is made
        expect(code).toBe(1);
        expect(stderr).toMatch(/^after-sales: .* seal questions with another key .* the same TENON_STATE_KEYS.*\n$/);
      }
      for (const keys of [`${key},${next}`, `${next},${key}`, `${key},${next}`, key]) {
        const process = serve(keys);
        await process.sees(/http:\S+\/mcp\n/);
        expect((await process.kill("SIGTERM").ended).code).toBe(0);
      }
    });

    it("lets two agents work on two threads at once, and one of them on the same thread", async () => {
      await scene.addOrders(["ORD-701", "ORD-702"], 29_900);
      const threads = ["shared-1", "shared-2"];
      const agents = threads.map((thread) => scene.agent(thread, onTestFinished));
      for (const [i, agent] of agents.entries()) agent.say(`ORD-70${i + 1} 坏了，请退款`);
      for (const agent of agents) await agent.sees("决定> ");
      // a second agent, on another machine, sees the open question of the first one's thread and answers it
      const other = scene.agent("shared-1", onTestFinished);
      await other.sees("上次有一个问题还没有回答：");
      await other.sees("决定> ");
      other.say("approve");
      await other.sees("退款已受理成功");
      agents[0]?.say("reject");
      await agents[0]?.sees("这个问题已在别处得到回答，你的回答没有使用。");
      agents[1]?.say("approve", "quit");
      await agents[1]?.sees("退款已受理成功");
      expect(await scene.refunds("ORD-70")).toEqual(["ORD-701", "ORD-702"]);
    });

    it("keeps a second agent from a thread that another machine works on, and says so", async () => {
      const stores = await openStores({ directory: dataDirectory(), url, schema: scene.env.TENON_DATABASE_SCHEMA }, "");
      onTestFinished(() => stores.close());
      const first = scene.agent("held", onTestFinished);
      first.say("ORD-002 坏了，请退款");
      await first.sees("决定> ");
      const taken = await stores.leases.acquire("thread:held", "another-machine:1", 60_000);
      const second = scene.agent("held", onTestFinished);
      await second.sees("会话 held 正在另一个窗口处理中");
      await stores.leases.release(taken.lease);
    });

    it("speaks TLS to agents on other machines, which bring tokens of their own", async () => {
      const certificate = fileURLToPath(new URL("../../../packages/server/test/fixtures/tls/first", import.meta.url));
      const tls = ["--tls-cert", `${certificate}.cert.pem`, "--tls-key", `${certificate}.key.pem`];
      const order = await scene.serve("order", ...tls);
      const notification = await scene.serve("notification", ...tls);
      const data = dataDirectory();
      const token = join(data, "token");
      writeFileSync(token, await scene.token(), { mode: 0o600 });
      const where = ["--order-url", order.url, "--notification-url", notification.url, "--order-token-file", token];
      const env = { ...scene.env, NODE_EXTRA_CA_CERTS: `${certificate}.cert.pem` };
      const chat = openChat(data, { args: [...where, "--thread", "tls"], env });
      chat.say("查询订单ORD-003", "quit");
      await chat.sees("2499.00 元");
      expect(order.url).toMatch(/^https:/);
    });

    it("tells a client at one process of a refund that was made at another", async () => {
      await scene.addOrders(["ORD-711"], 100);
      const [one, two] = scene.replicas.order;
      const official = await connected(one?.url ?? "", { mode: { pin: "2026-07-28" } });
      const heard: string[] = [];
      official.setNotificationHandler("notifications/resources/updated", ({ params }) => void heard.push(params.uri));
      await official.listen({ resourceSubscriptions: ["order://ORD-711"] });
      const client = await scene.client(two?.url ?? "", onTestFinished);
      await client.callTool("order", "process_refund", { order_id: "ORD-711", reason: "r" });
      await until(() => heard.length > 0, "the notification", 5_000);
      expect(heard).toEqual(["order://ORD-711"]);
    });

    it("runs batches as tasks on two workers, of which one dies: each order once, and every client gets its result", async () => {
      const workers = [await scene.work(onTestFinished), await scene.work(onTestFinished)];
      const batches = Array.from({ length: 4 }, (_, batch) =>
        Array.from({ length: 150 }, (_one, i) => `ORD-${20_000 + batch * 1_000 + i}`),
      );
      await scene.addOrders(batches.flat(), 100);
      const client = await scene.client(scene.proxies.order.url, onTestFinished);
      const results = batches.map((order_ids) => client.callTool("order", "batch_refund", { order_ids, reason: "r" }));
      await until(async () => (await scene.refunds("ORD-2")).length > 40, "both workers to be at it");
      for (const worker of workers) expect(worker.stderr).toContain("批量退款");
      workers[0]?.kill("SIGKILL");
      for (const outcome of await Promise.all(results)) {
        expect(outcome.structured).toMatchObject({ total: 150, skipped: [], amount: "150.00" });
      }
      expect(await scene.refunds("ORD-2")).toEqual(batches.flat().sort());
    }, 120_000);

    it("lets an agent hand over a large batch, and tells its result when the workers are done", async () => {
      await scene.work(onTestFinished);
      const ids = Array.from({ length: 120 }, (_, i) => `ORD-${3_000 + i}`);
      await scene.addOrders(ids, 100);
      const chat = scene.agent("large", onTestFinished);
      chat.say(`${ids.join("、")} 由于质量问题，请批量退款`, "quit");
      await chat.sees("120 个订单中成功 120 个", 60_000);
      expect((await chat.ended).code).toBe(0);
      expect(await scene.refunds("ORD-3")).toEqual(ids);
    }, 120_000);

    describe("to a client of 2025-11-25, whose session is known to one process only", () => {
      const upstreams = (): string[] => scene.replicas.order.map((replica) => replica.url);
      const initialisations = (passed: readonly Passed[]): number =>
        passed.filter(({ method }) => method === "initialize").length;

      it("says that the session is lost where the proxy does not keep it, and begins anew once, not for ever", async () => {
        const proxy = await roundRobin(upstreams(), { legacyOnly: true });
        onTestFinished(() => proxy.close());
        const client = await scene.client(proxy.url, onTestFinished);
        const began = Date.now();
        const failure = await client.callTool("order", "query_order", { order_id: "ORD-001" }).then(
          () => undefined,
          (error: unknown) => error,
        );
        expect(failure).toBeInstanceOf(ConnectionError);
        expect(failure).toMatchObject({ code: "session_lost", maybeExecuted: false });
        expect(Date.now() - began).toBeLessThan(10_000);
        expect(initialisations(proxy.passed)).toBeLessThanOrEqual(3);
        await expect(connected(proxy.url)).rejects.toMatchObject({ status: 404 });

        // with other traffic in between, the next request may happen to reach the right process, or not
        const both = await roundRobin(upstreams().slice(0, 2), { legacyOnly: true });
        onTestFinished(() => both.close());
        const clients = await Promise.all(Array.from({ length: 5 }, () => scene.client(both.url, onTestFinished)));
        const calls = await Promise.allSettled(
          clients.map((one) => one.callTool("order", "query_order", { order_id: "ORD-001" })),
        );
        for (const call of calls) {
          if (call.status === "rejected") expect(call.reason).toMatchObject({ code: "session_lost" });
        }
        expect(initialisations(both.passed)).toBeLessThanOrEqual(5 * 4);
      });

      it("works where the proxy keeps a session where it began, by its Mcp-Session-Id", async () => {
        await scene.addOrders(["ORD-801"], 60_000);
        const proxy = await roundRobin(upstreams(), { legacyOnly: true, sticky: true });
        onTestFinished(() => proxy.close());
        const client = await scene.client(proxy.url, onTestFinished);
        const found = await client.callTool("order", "query_order", { order_id: "ORD-001" });
        expect(found.structured).toMatchObject({ orderId: "ORD-001" });
        const refund = await client.callTool("order", "process_refund", { order_id: "ORD-801", reason: "r" });
        expect(refund.structured).toMatchObject({ status: "refunded" });
        expect(initialisations(proxy.passed)).toBe(1);
        const official = await connected(proxy.url);
        const answer = await official.callTool({ name: "query_order", arguments: { order_id: "ORD-002" } });
        expect(answer.isError).not.toBe(true);
      });
    });
  });
}
