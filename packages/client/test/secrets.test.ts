import type { ServerResponse } from "node:http";
import { inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { bearer } from "../src/auth/index.ts";
import { createClient } from "../src/index.ts";
import { closeAfterEach, start, stubHttp } from "./stub/index.ts";

// What a server was given to let us in comes back in what it says: gateways, frameworks and debug pages repeat the header they
// refuse. From there it would go into errors, logs, health pages and, with a tool's message, before a model.

closeAfterEach();

type Answer = (said: string, res: ServerResponse, id: unknown) => void;
const json = (res: ServerResponse, status: number, body: object): void => {
  res.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify({ jsonrpc: "2.0", ...body }));
};
const answers: Record<string, Answer> = {
  "a page with 500": (said, res) => res.writeHead(500).end(`you sent ${said}`),
  "a page with 403": (said, res) => res.writeHead(403).end(`you sent ${said}`),
  "a page with 429": (said, res) => res.writeHead(429, { "retry-after": "1000" }).end(`you sent ${said}`),
  "a challenge": (said, res) =>
    res.writeHead(401, { "www-authenticate": `Bearer error="invalid_token", error_description="${said}"` }).end(said),
  "an error with 400": (said, res, id) => json(res, 400, { id, error: { code: -32_000, message: said } }),
  "an error with 200": (said, res, id) =>
    json(res, 200, { id, error: { code: -32_000, message: said, data: { said } } }),
  "broken JSON": (said, res) => res.writeHead(200, { "content-type": "application/json" }).end(`{"x":"${said}"`),
  "an event": (said, res, id) =>
    res
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(`data: {"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32000,"message":"${said}"}}\n\n`),
  "the last event, cut off": (said, res) =>
    res.writeHead(200, { "content-type": "text/event-stream" }).end(`data: {"result":"${said}`),
  "a result": (said, res, id) =>
    json(res, 200, { id, result: { resultType: "complete", content: [{ type: "text", text: said }] } }),
};
const given = {
  headers: {
    headers: {
      Authorization: "Bearer SECRET-header",
      "x-api-key": "SECRET-key-1",
      cookie: "a=SECRET-cookie; b=SECRET-2nd",
    },
  },
  auth: { auth: bearer("SECRET-bearer") },
};

describe.each(Object.entries(answers))("a server that repeats what it was sent, in %s", (_, answer) => {
  it.each(["when the connection opens", "in a call"])("%s, tells nobody", async (when) => {
    let repeated = 0;
    const onHttp = (req: { headers: Record<string, unknown> }, res: ServerResponse, body: string) => {
      if (when === "in a call" && !body.includes("tools/call")) return undefined;
      repeated += 1;
      const { authorization, "x-api-key": key, cookie } = req.headers;
      answer([authorization, key, cookie].join(" ").replaceAll('"', ""), res, body === "" ? 1 : JSON.parse(body).id);
      return true;
    };
    const server = await start(stubHttp({ onHttp: onHttp as never }));
    for (const more of Object.values(given)) {
      await using client = createClient({ servers: { s: { ...server.config, ...more } as never } });
      const outcome: unknown = await client.callTool("s", "t").catch((error: unknown) => error);
      const all = inspect([outcome, client.servers(), client, "auth" in more && more.auth], {
        depth: 20,
        showHidden: true,
      });
      expect(all).not.toContain("SECRET");
    }
    expect(repeated).toBeGreaterThan(1);
  });
});

describe("a process", () => {
  it("that cannot be started, or ends with its secret on its lips, has none of its secrets in the error", async () => {
    const env = { API_TOKEN: "SECRET-env-1", PATH: process.env.PATH ?? "" };
    const script = "process.stderr.write('bad token ' + process.env.API_TOKEN); process.exit(3)";
    await using client = createClient({
      servers: {
        none: { command: "no-such-command-here", args: ["--token=SECRET-arg-1"], env },
        dies: { command: process.execPath, args: ["-e", script], env },
      },
    });
    for (const server of ["none", "dies"]) {
      const error: unknown = await client.callTool(server, "t").catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ name: "ConnectionError" });
      expect(inspect([error, client.servers()], { depth: 20, showHidden: true })).not.toContain("SECRET");
    }
  });
});
