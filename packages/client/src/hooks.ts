import type { ConnectionHooks } from "./connection/connection.ts";
import type { Pools } from "./connection/pool.ts";
import type { Emit } from "./events.ts";
import { answerLegacyQuestion } from "./question/legacy-questions.ts";
import type { PeerAnswers } from "./question/peer-requests.ts";
import type { Visits } from "./question/url-refusals.ts";
import type { Gate } from "./trust/gate.ts";
import type { ClientOptions } from "./types/client.ts";

const INFO = { name: "tenon", version: "0.1.0" };

/** What a client shares with all its connections. */
interface Shared {
  readonly emit: Emit;
  readonly gate: Gate;
  readonly peers: PeerAnswers;
  readonly pools: Pools;
  readonly visits: Visits;
}

/** What the connections of a client ask and tell it. */
export function connectionHooks(
  options: Pick<ClientOptions, "servers" | "events" | "elicitation" | "info">,
  { emit, gate, peers, pools, visits }: Shared,
): ConnectionHooks {
  const { servers, events = {}, elicitation, info = INFO } = options;
  const { onLog } = events;
  return {
    info,
    pools,
    peers,
    elicitation: elicitation !== undefined,
    beforeOpen: (server, config) => gate.start(server, config),
    onContract: (event) => emit(events.onContract, event),
    onStderr: onLog && ((server, data) => emit(onLog, { level: "info", logger: "stderr", data }, { server })),
    notifications: {
      "notifications/tools/list_changed": (server) => emit(events.onCatalogChanged, { server }),
      "notifications/message": (server, { level, logger, data }, call) => {
        const event = { level, ...(logger !== undefined && { logger }), data };
        const source = call?.source ?? { server };
        emit(onLog, event, source);
        emit(call?.onLog, event, source);
      },
      ...(elicitation !== undefined && {
        "notifications/elicitation/complete": (server: string, params: unknown) => visits.complete(server, params),
      }),
    },
    onQuestion: (server, params, calls, signal) =>
      answerLegacyQuestion(elicitation ?? "interrupt", server, params, calls, signal, {
        expectHosts: servers[server]?.expectHosts,
        onQuestion: (question, source) => emit(events.onElicitation, question, source),
      }),
  };
}
