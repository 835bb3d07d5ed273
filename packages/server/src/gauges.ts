import { gauge } from "@tenon/core/internal";
import type { Tasks } from "./task/tasks.ts";

/**
 * What of a server is looked at whenever metrics are collected. Its tasks are those of the store: every process that shares it says
 * the same of them.
 * @param sessions how many there are of the older revision
 */
export function createGauges(server: string, tasks: Pick<Tasks, "count">, sessions: () => Promise<number>) {
  const stops: (() => void)[] = [];
  return {
    startGauges(): void {
      if (stops.length > 0) return;
      stops.push(
        gauge("tenon_legacy_sessions", async () => [{ value: await sessions(), attributes: { server } }]),
        gauge("tenon_tasks", async () =>
          Object.entries((await tasks.count()) ?? {}).map(([state, value]) => ({
            value,
            attributes: { server, state },
          })),
        ),
      );
    },
    stopGauges(): void {
      for (const stop of stops.splice(0)) stop();
    },
  };
}
