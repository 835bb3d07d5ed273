import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { codeOf } from "@tenon/core";

/** A name for this process that {@link isProcessGone} understands, different each time. */
export function processHolder(): string {
  return `${hostname()} ${process.pid} ${randomUUID()}`;
}

/**
 * Whether the process named by {@link processHolder} ran on this machine and is no more. Only where all processes that share the
 * store and this host name see each other: containers that share a host name do not.
 */
export function isProcessGone(holder: string): boolean {
  const [host, pid] = holder.split(" ");
  if (host !== hostname() || !/^\d+$/.test(pid ?? "")) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return codeOf(error) === "ESRCH";
  }
}
