import { ToolError } from "@tenon/server";

// #region tools
export function getCurrentTime({ timezone }: { timezone: string }) {
  return inZone(new Date(), timezone);
}

/** A time of today in one zone, in another. */
export async function convertTime(given: { source_timezone: string; time: string; target_timezone: string }) {
  const moment = today(given.time, given.source_timezone);
  const [source, target] = [inZone(moment, given.source_timezone), inZone(moment, given.target_timezone)];
  const hours = (target.offset - source.offset) / 60;
  return { source, target, time_difference: `${hours < 0 ? "" : "+"}${hours}h` };
}
// #endregion

/** A moment in a zone, such as `2026-11-30T21:15+08:00`; `offset` is how many minutes its clocks are ahead of UTC. */
function inZone(moment: Date, timezone: string) {
  const offset = offsetOf(moment, timezone);
  const local = new Date(moment.getTime() + offset * 60_000).toISOString().slice(0, 16);
  const two = (n: number): string => String(Math.trunc(Math.abs(n))).padStart(2, "0");
  return { timezone, datetime: `${local}${offset < 0 ? "-" : "+"}${two(offset / 60)}:${two(offset % 60)}`, offset };
}

/** The moment at which the clocks of a zone show `HH:MM` today. */
function today(time: string, timezone: string): Date {
  const asUtc = new Date(`${new Date().toISOString().slice(0, 10)}T${time}Z`);
  return new Date(asUtc.getTime() - offsetOf(asUtc, timezone) * 60_000);
}

function offsetOf(moment: Date, timezone: string): number {
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat("en", { timeZone: timezone, timeZoneName: "longOffset" });
  } catch {
    throw new ToolError(`${timezone} is no time zone; expected an IANA name such as Asia/Shanghai`);
  }
  const name = format.formatToParts(moment).find(({ type }) => type === "timeZoneName")?.value ?? "";
  const [, sign, hours, minutes] = /([+-])(\d+):(\d+)/.exec(name) ?? []; // plain "GMT" has none
  return (Number(hours ?? 0) * 60 + Number(minutes ?? 0)) * (sign === "-" ? -1 : 1);
}
