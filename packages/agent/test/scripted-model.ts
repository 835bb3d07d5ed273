import { OfflineModel, type OfflineReply, type OfflineTurn } from "../src/index.ts";

/** A model that makes the given calls once per turn of the conversation, then says "done: " and the results. */
export function callingModel(
  ...calls: Array<{ name: string; args?: Record<string, unknown> }>
): OfflineModel & { turns: OfflineTurn[] } {
  const turns: OfflineTurn[] = [];
  const model = new OfflineModel({
    reply: (turn): OfflineReply => {
      turns.push(turn);
      if (turn.step === 0 && !/^plain/.test(turn.text)) {
        return { calls: calls.map((call) => ({ name: call.name, args: call.args ?? {} })) };
      }
      return { text: `done: ${turn.results.map((result) => `${result.status}=${result.text}`).join(" | ")}` };
    },
  });
  return Object.assign(model, { turns });
}
