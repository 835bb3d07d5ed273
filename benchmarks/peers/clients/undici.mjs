// No client at all: undici.request with a prebuilt header set. What is left to gain.
import { request } from "undici";
import { request as message } from "../../lib/wire.mjs";

export async function connect([{ url }]) {
  let id = 0;
  const ask = async (method, params) => {
    const { body, headers } = message("modern", method, params, ++id);
    const response = await request(url, { method: "POST", headers, body });
    return (await response.body.json()).result;
  };
  return {
    tools: (await ask("tools/list")).tools.length,
    call: async (a, b) => (await ask("tools/call", { name: "add", arguments: { a, b } })).content[0].text,
    close: async () => {},
  };
}
