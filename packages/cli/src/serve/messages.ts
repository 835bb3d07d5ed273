import { isRecord } from "@tenon/core";
import type { Explanation } from "../failure.ts";

/** Environment variable that says whose worker a process is: a process manager may run this command as a worker of its own. */
export const WORKER_MARK = "TENON_SERVE_WORKER";

/** What a worker tells the process that watches over it. */
export type FromWorker =
  | { readonly tenon: "hello" }
  | { readonly tenon: "listening"; readonly url: string; readonly port: number; readonly admin?: string }
  | { readonly tenon: "failed"; readonly explanation: Explanation; readonly code: string };

/** What a worker is told. The text of the file comes along, so that all serve the same although it changes meanwhile. */
export type ToWorker =
  | {
      readonly tenon: "start";
      readonly text: string;
      readonly workers: number;
      readonly port?: number;
      readonly admin: boolean;
    }
  | { readonly tenon: "close" };

/** Whether a message between processes is one of ours: functions of the user may send their own. */
export const isOurs = (message: unknown): boolean => isRecord(message) && typeof message.tenon === "string";
