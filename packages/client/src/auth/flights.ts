import { withSignal } from "../connection/deadline.ts";
import { authError } from "./errors.ts";

interface Flight {
  readonly landed: Promise<void>;
  readonly controller: AbortController;
  waiting: number;
}

/** Works that are done once for all who need them at the same time. */
export class Flights {
  readonly #flights = new Map<string, Flight>();

  /**
   * Joins the work that runs for `key`, or starts it. The work is given up when everybody who waits for it has left.
   * @param signal of whoever waits
   */
  async join(server: string, key: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<void>) {
    const flight = this.#flights.get(key) ?? this.#start(key, work);
    flight.waiting++;
    const closed = () => authError(server, "closed", "the client was closed while it asked for a token");
    try {
      await withSignal(flight.landed, signal, closed);
    } finally {
      if (--flight.waiting === 0) flight.controller.abort(closed());
    }
  }

  #start(key: string, work: (signal: AbortSignal) => Promise<void>): Flight {
    const controller = new AbortController();
    const landed = work(controller.signal).finally(() => {
      if (this.#flights.get(key) === flight) this.#flights.delete(key);
    });
    landed.catch(() => {}); // whoever waits learns of it
    const flight: Flight = { landed, controller, waiting: 0 };
    this.#flights.set(key, flight);
    return flight;
  }
}
