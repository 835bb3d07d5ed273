/** Stands around the core: looks at a request, answers it itself, or goes on with `next` and may change what comes back. */
type Layer<Request, Outcome, Given> = (
  request: Request,
  next: (given: Given) => Promise<Outcome>,
) => Outcome | Promise<Outcome>;

/** Layers around a core. */
export interface Layers<Request, Outcome, Given, L extends Layer<Request, Outcome, Given>> {
  /** The first one is outermost. */
  readonly layers: readonly L[];
  readonly core: (request: Request) => Promise<Outcome>;
  /**
   * The request that goes in, out of what a layer handed to `next`.
   * @param outer the request that the layer got
   */
  readonly enter: (given: Given | Request, outer: Request) => Request;
  /** Looks at what a layer answered. @returns what counts */
  readonly check: (outcome: Outcome, layer: L, index: number) => Outcome;
  /** Gives what a layer waits for instead of the bare outcome of what it called. Left out: that outcome. */
  readonly wait?: (outcome: Promise<Outcome>) => Promise<Outcome>;
}

const quiet = (): void => {};

/**
 * Runs layers around a core, as servers do with middleware and clients with interceptors. `next` may be called any number of
 * times, also at once; one that nobody awaits does not end the process by its failure.
 */
export function runLayers<Request, Outcome, Given, L extends Layer<Request, Outcome, Given>>(
  { layers, core, enter, check, wait }: Layers<Request, Outcome, Given, L>,
  request: Request,
): Promise<Outcome> {
  const hold = (outcome: Promise<Outcome>): Promise<Outcome> => {
    const held = wait ? wait(outcome) : outcome;
    held.catch(quiet);
    return held;
  };
  const inward = async (depth: number, outer: Request, given: Given | Request): Promise<Outcome> => {
    const inner = enter(given, outer);
    const layer = layers[depth];
    if (!layer) return core(inner);
    return check(await layer(inner, (next) => hold(inward(depth + 1, inner, next))), layer, depth);
  };
  return hold(inward(0, request, request));
}
