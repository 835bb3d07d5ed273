import type { Agent } from "node:http";
import type { Duplex } from "node:stream";

/** The connections to collectors, until they are cut. */
export interface Connections {
  /** What an exporter takes as `httpAgentOptions`. */
  open(protocol: string): Promise<Agent>;
  /** Ends them in the middle of whatever they do, and opens no more: a collector that hangs must not keep a program that is done. */
  cut(): void;
}

/** Connections that can be cut. */
export function createConnections(): Connections {
  const open = new Set<Duplex>();
  let isCut = false;
  // no error of the network: an exporter would try again
  const over = (): Error => new Error("telemetry is closed");
  return {
    async open(protocol) {
      const { Agent } = protocol === "https:" ? await import("node:https") : await import("node:http");
      const agent = new Agent({ keepAlive: true });
      const connect = agent.createConnection;
      agent.createConnection = (...args) => {
        if (isCut) throw over();
        const stream = connect.apply(agent, args);
        if (stream) {
          open.add(stream);
          stream.once("close", () => open.delete(stream));
        }
        return stream;
      };
      return agent;
    },
    cut() {
      isCut = true;
      for (const stream of open) stream.destroy(over());
    },
  };
}
