import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { dataDirectory, ENTRY, openChat, Program, processesOn, refunds, run, talk, until } from "./desk.ts";
import { DESK_URL } from "./desk-database.ts";
import { tokenFor } from "./token-for.ts";

/** A port that is taken for the length of the test; 0 takes a free one. */
async function takenPort(wanted = 0): Promise<number> {
  const server = createServer();
  const port = await new Promise<number>((resolve) => {
    // taken by somebody else already: as good
    server.once("error", () => resolve(wanted));
    server.listen(wanted, "127.0.0.1", () => {
      const address = server.address();
      resolve(typeof address === "object" && address ? address.port : 0);
    });
  });
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  return port;
}

/** The program says why in one line and ends with 1. */
async function expectRefusal(
  args: readonly string[],
  why: string | RegExp,
  env?: Record<string, string>,
): Promise<void> {
  const { code, stdout, stderr } = await run(args, env);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.trim().split("\n")).toEqual([expect.stringMatching(why)]);
}

describe("a port in use", () => {
  it("is an error where it was asked for, and no server is left", async () => {
    const data = dataDirectory();
    const port = String(await takenPort());
    const why = new RegExp(`^after-sales: Port ${port} on 127.0.0.1 is in use`);
    await expectRefusal(["chat", "--data", data, "--order-port", port, "--notification-port", "0"], why);
    await expectRefusal(["serve", "order", "--data", data, "--port", port], why);
    expect(processesOn(data)).toEqual([]);
  });

  it("is replaced by a free one where it is only the usual one, which is told", async () => {
    const data = dataDirectory();
    await takenPort(8030);
    await takenPort(8031);
    const chat = new Program([process.execPath, ENTRY, "chat", "--all", "--data", data]).say("查询订单ORD-001", "quit");
    const { code, stdout } = await chat.ended;
    expect(code).toBe(0);
    expect(stdout).toMatch(/^端口 8030 已被占用，订单服务改用 http:\/\/127\.0\.0\.1:\d+\/mcp$/m);
    expect(stdout).toMatch(/^端口 8031 已被占用，通知服务改用 http:\/\/127\.0\.0\.1:\d+\/mcp$/m);
    expect(stdout).toContain("299.00 元");
  });
});

describe("a data directory that cannot be written", () => {
  it("may be a file, or lie below one", async () => {
    const file = join(dataDirectory(), "file");
    writeFileSync(file, "");
    await expectRefusal(
      ["chat", "--data", file],
      /^after-sales: The data directory .* cannot be written: it is a file\. Choose another/,
    );
    await expectRefusal(["chat", "--data", join(file, "x")], /cannot be written: a part of the path is a file/);
    await expectRefusal(["serve", "order", "--data", file], /cannot be written/);
    await expectRefusal(["start", "--data", file], /cannot be written/);
  });

  const unshare = spawnSync("unshare", ["-rm", "true"]).status === 0;
  if (!unshare) console.log("skipped: a read-only file system needs `unshare -rm`, which does not work here");
  it.skipIf(!unshare)("may be a read-only file system", async () => {
    const data = dataDirectory();
    const script = `mount -t tmpfs -o ro none ${data} && exec "$0" "$@"`;
    const chat = ["unshare", "-rm", "sh", "-c", script, process.execPath, ENTRY, "chat", "--data"];
    for (const path of [data, join(data, "below")]) {
      const { code, stdout, stderr } = await new Program([...chat, path]).hangUp().ended;
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      expect(stderr).toMatch(
        /^after-sales: The data directory \S+ cannot be written: the file system is read-only\. Choose another with --data\n$/,
      );
    }
  });

  it.skipIf(DESK_URL !== undefined)("may hold files that are no databases", async () => {
    for (const name of ["orders.sqlite", "threads.sqlite"]) {
      const data = dataDirectory();
      writeFileSync(join(data, name), "this is no database, and long enough to be looked at as one ".repeat(50));
      await expectRefusal(["chat", "--all", "--data", data, "--order-port", "0", "--notification-port", "0"], name);
    }
  });
});

describe("flags", () => {
  it("nobody knows are refused, with the nearest one", async () => {
    await expectRefusalOf(
      ["chat", "--modle", "offline"],
      ["error: unknown option '--modle'", "(Did you mean --model?)"],
    );
    await expectRefusalOf(["chat", "--lang", "fr"], [/option '--lang <language>' argument 'fr' is invalid/]);
    await expectRefusalOf(["chat", "--order-port", "99999"], [/expected a port from 0 to 65535/]);
    await expectRefusalOf(["chta"], ["error: unknown command 'chta'", "(Did you mean chat?)"]);
    await expectRefusalOf(["chat", "stray"], [/too many arguments/]);
  });

  it("with a database that is none or away, or too little about a server for others, end in one line", async () => {
    const data = dataDirectory();
    const away = "postgres://postgres@127.0.0.1:1/x";
    const server = ["serve", "order", "--port", "0", "--data", data];
    await expectRefusal([...server, "--database", away], "The database of --database cannot be reached");
    await expectRefusal(["worker", "--data", data, "--database", away], "The database of --database cannot be reached");
    await expectRefusal(
      ["chat", "--all", "--data", data, "--database", "mysql://x"],
      "expects an address like postgres:",
    );
    await expectRefusal([...server, "--database", away, "--schema", "a b"], "must be one word");
    await expectRefusal([...server, "--host", "0.0.0.0"], "say with --allowed-host");
    await expectRefusal([...server, "--tls-cert", "x"], "belong together");
  });

  it("with a model that does not exist or has no key end in one line", async () => {
    const data = dataDirectory();
    await expectRefusal(
      ["chat", "--data", data, "--model", "openai:gpt-4.1"],
      /^after-sales: The model "openai:gpt-4.1" needs a key: set OPENAI_API_KEY/,
    );
    await expectRefusal(
      ["chat", "--data", data, "--model", "nonsense"],
      /^after-sales: There is no model provider "nonsense"/,
    );
    await expectRefusal(
      ["chat", "--data", data, "--model", "openai-compatible:x"],
      /needs the address of its endpoint/,
    );
  });

  it("with an address that is none, or a server that does not exist, end in one line", async () => {
    const data = dataDirectory();
    await expectRefusal(
      ["chat", "--data", data, "--order-url", "localhost:8030"],
      /--order-url localhost:8030 is no http address/,
    );
    await expectRefusal(
      ["serve", "orders", "--data", data],
      /There is no server "orders"; choose order, notification or all/,
    );
    await expectRefusal(["serve", "all", "--data", data, "--port", "1"], /--port names the port of one server/);
  });
});

async function expectRefusalOf(args: readonly string[], lines: readonly (string | RegExp)[]): Promise<void> {
  const { code, stdout, stderr } = await run(args);
  expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
  expect(stderr.trim().split("\n")).toEqual(lines.map((line) => expect.stringMatching(line)));
}

describe("start without a terminal", () => {
  it.each(["SIGINT", "SIGTERM"] as const)("serves, says where, and %s stops it and its servers", async (signal) => {
    const data = dataDirectory();
    const started = new Program([
      process.execPath,
      ENTRY,
      "start",
      "--data",
      data,
      "--order-port",
      "0",
      "--notification-port",
      "0",
    ]).hangUp();
    const text = await started.sees("没有终端");
    const urls = [...text.matchAll(/http:\/\/127\.0\.0\.1:\d+\/mcp/g)].map(([url]) => url);
    expect(urls).toHaveLength(2);
    if (signal === "SIGTERM") {
      // a chat on another directory has another key: it works with them by the user's tokens
      const [order = "", notification = ""] = urls;
      const other = dataDirectory();
      const chat = await talk(other, ["ORD-001 坏了，请退款", "approve"], {
        args: ["--order-url", order, "--notification-url", notification],
        env: {
          TENON_ORDER_TOKEN: await tokenFor(data, "order"),
          TENON_NOTIFICATION_TOKEN: await tokenFor(data, "notification"),
        },
      });
      expect(chat).toContain("退款已受理成功");
      expect(refunds(data)).toEqual(["ORD-001"]);
    }
    const { code, stdout, stderr } = await started.kill(signal).ended;
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(stdout).toContain("已停止。");
    expect(processesOn(data)).toEqual([]);
  });

  it("as npm start, stops with the script that runs it", async () => {
    const data = dataDirectory();
    const started = new Program([
      "npm",
      "start",
      "--",
      "--data",
      data,
      "--all",
      "--order-port",
      "0",
      "--notification-port",
      "0",
    ]).hangUp();
    await started.sees("没有终端");
    const program = processesOn(data).find(
      ({ command }) => command.includes("dist/main.js") && !command.includes("with-build"),
    );
    process.kill(program?.pid ?? 0, "SIGINT");
    expect((await started.ended).code).toBe(0);
    await until(() => processesOn(data).length === 0, "every process to end");
  });
});

describe("serve", () => {
  it("runs one server alone, on the wanted port, until it is told to stop", async () => {
    const data = dataDirectory();
    const server = new Program([
      process.execPath,
      ENTRY,
      "serve",
      "order",
      "--port",
      "0",
      "--data",
      data,
      "--lang",
      "en",
    ]);
    const url = (await server.sees(/order http:\S+\/mcp\n/)).slice(6).trim();
    const answer = await fetch(url, { method: "GET" });
    expect(answer.status).toBe(401); // it listens, and takes tokens only
    expect((await server.kill("SIGTERM").ended).code).toBe(0);
  });

  it("ends when it loses its supervisor before it listens", async () => {
    const data = dataDirectory();
    const chat = openChat(data, { args: [] });
    await until(() => processesOn(data).length === 3, "both servers to be started");
    await chat.kill("SIGKILL").ended;
    await until(() => processesOn(data).length === 0, "the servers to end");
  });
});
