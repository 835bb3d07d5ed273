// Answers that are no messages of the protocol, or not quite: each costs at most its own call, at once, and says why.
import { describe, expect, it } from "vitest";
import { renderText } from "../src/index.ts";
import { closeAfterEach, connect, type StubReply, start, stubHttp, stubStdio } from "./stub/index.ts";

closeAfterEach();

type Say = (reply: StubReply, text: string) => void;
/** The ways an answer takes. */
const WAYS: readonly (readonly [string, typeof stubHttp | typeof stubStdio, Say])[] = [
  ["stdio", stubStdio, (reply, text) => reply.raw(`${text}\n`)],
  ["HTTP as JSON", stubHttp, (reply, text) => reply.http(200, { "content-type": "application/json" }, text)],
  [
    "HTTP as an event",
    stubHttp,
    (reply, text) => {
      reply.stream();
      reply.raw(`event: message\ndata: ${text}\n\n`);
      reply.end();
    },
  ],
];
const FINE = '"result":{"resultType":"complete","content":[{"type":"text","text":"fine"}]}';

describe.each(WAYS)("over %s, an answer", (_, stub, say) => {
  const answered = async (body: string) => {
    const server = await start(
      stub({
        onCall: ({ id, nth }, reply) =>
          nth === 1 ? say(reply, body.replace("ID", String(id))) : { content: [{ type: "text", text: "next" }] },
      }),
    );
    const client = connect({ s: server.config });
    const outcome = await client.callTool("s", "t").catch((thrown: unknown) => thrown);
    expect(renderText((await client.callTool("s", "t")).content)).toBe("next");
    expect(server.count("server/discover")).toBe(1);
    return outcome;
  };

  it.each([
    ["whose result is null", '{"jsonrpc":"2.0","id":ID,"result":null}', "its result is not an object but null"],
    ["whose result is a text", '{"jsonrpc":"2.0","id":ID,"result":"yes"}', 'not an object but "yes"'],
    ["without result and error", '{"jsonrpc":"2.0","id":ID}', "neither a result nor an error"],
    [
      "with both",
      `{"jsonrpc":"2.0","id":ID,${FINE},"error":{"code":1,"message":"boom"}}`,
      "both a result and an error",
    ],
    ["with a NaN", '{"jsonrpc":"2.0","id":ID,"result":{"content":[],"structuredContent":NaN}}', "no JSON"],
    ["that is cut off", '{"jsonrpc":"2.0","id":ID,"result":{"content":[', "no JSON"],
  ])("%s fails its call at once with what it was", async (_, body, reason) => {
    const error = await answered(body);
    expect(error).toMatchObject({ code: "bad_answer", server: "s", maybeExecuted: true });
    expect(String(error)).toContain(reason);
  });

  it.each([
    ["without a message", '{"code":-32000}', '{"code":-32000}'],
    ["with a code that is a text", '{"code":"E1","message":"boom"}', 'boom (code "E1")'],
    ["that is a text", '"boom happened"', "boom happened"],
    ["that is endless", `{"code":1,"message":"${"m".repeat(100_000)}"}`, "mmm…"],
  ])("with an error %s is that error", async (_, given, shown) => {
    const error = await answered(`{"jsonrpc":"2.0","id":ID,"error":${given}}`);
    expect(error).toMatchObject({ code: "rpc_error" });
    expect(String(error)).toContain(shown);
    expect(String(error).length).toBeLessThan(5_000);
  });

  it.each([
    ["with error: null beside its result", `{"jsonrpc":"2.0","id":ID,${FINE},"error":null}`],
    ["with a key too many", `{"jsonrpc":"2.0","id":ID,${FINE},"trace":"1"}`],
    ["without the version of JSON-RPC", `{"id":ID,${FINE}}`],
    ["in a batch", `[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":ID,${FINE}}]`],
    ["with _meta: null", `{"jsonrpc":"2.0","id":ID,${FINE.replace("{", '{"_meta":null,"isError":null,')}}`],
  ])("%s is read by what it says", async (_, body) => {
    const result = await answered(body);
    expect(result).toMatchObject({ isError: false, meta: {}, content: [{ text: "fine" }] });
  });
});

describe("an event stream", () => {
  it.each([
    ["CRLF", "\r\n"],
    ["CR", "\r"],
    ["LF", "\n"],
  ])("may end its lines with %s, in pieces of any size, and stay open", async (_, end) => {
    const server = await start(
      stubHttp({
        onCall: ({ id }, reply) => {
          reply.stream();
          const data = `{"jsonrpc":"2.0","id":${id},${end}data: ${FINE.replace("fine", "größe 北京")}}`;
          const bytes = Buffer.from(`\ufeff: hello${end}${end}event: message${end}data: ${data}${end}${end}`);
          void (async () => {
            for (const byte of bytes) {
              reply.raw(Uint8Array.of(byte));
              if (byte > 127 || byte < 32) await new Promise((resolve) => setTimeout(resolve, 2));
            }
          })();
        },
      }),
    );
    const result = await connect({ s: server.config }).callTool("s", "t", {}, { timeoutMs: 15_000 });
    expect(renderText(result.content)).toBe("größe 北京");
  });
});

it("a flood of empty lines on standard output holds nobody", async () => {
  const server = await start(
    stubStdio({
      onCall: (_, reply) => {
        for (let n = 0; n < 20; n++) reply.raw("\n".repeat(200_000));
        return { content: [{ type: "text", text: "fine" }] };
      },
    }),
  );
  expect(renderText((await connect({ s: server.config }).callTool("s", "t")).content)).toBe("fine");
}, 30_000);
