import type { Wire } from "./channel.ts";
import { send } from "./http.ts";

/** Whether a server of the first revision answers here: its stream begins with an endpoint. */
export async function isSse({ visit, route, headers }: Wire, url: URL): Promise<boolean> {
  const accept = { accept: "text/event-stream" };
  const answer = await send(visit, route, {
    method: "GET",
    url,
    headers: { ...accept, ...headers },
    until: /^event: ?endpoint/m,
    ms: 700,
  });
  return answer.kind === "answer" && answer.end === "found";
}
