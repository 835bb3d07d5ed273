/** Loaded first into a process: its clock is `CLOCK_HOURS` ahead. */
const ahead = Number(process.env.CLOCK_HOURS ?? 0) * 3_600_000;
const Now = Date;

globalThis.Date = class extends Now {
  static override now(): number {
    return Now.now() + ahead;
  }
  constructor(...given: [] | [number]) {
    super(...(given.length === 0 ? ([Now.now() + ahead] as [number]) : given));
  }
} as DateConstructor; // whatever Date is made from is passed on as it came
