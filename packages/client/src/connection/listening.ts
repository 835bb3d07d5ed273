import {
  type Client as SdkClient,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  ProtocolError as SdkProtocolError,
} from "@modelcontextprotocol/client";
import { withExchange } from "./exchange.ts";
import { backoff } from "./time.ts";

const ACK_MS = 5_000;
/** The waits before a stream is asked for again, in milliseconds. */
const WAITS = { firstMs: 250, mostMs: 30_000 };
/** A stream that lived this long was no failure. */
const GOOD_MS = 10_000;

/** Whether a server will never give a stream, so that asking again is of no use. */
function isRefusal(error: unknown): boolean {
  if (SdkProtocolError.isInstance(error)) return true;
  if (SdkHttpError.isInstance(error)) return error.status >= 400 && error.status < 500 && error.status !== 429;
  if (!SdkError.isInstance(error)) return false;
  return [SdkErrorCode.MethodNotSupportedByProtocolVersion, SdkErrorCode.NotConnected].includes(error.code);
}

/**
 * Keeps a `subscriptions/listen` stream for changes of the tools open, again and again, until the result is called or the
 * connection is gone. Neither its stream nor its waits hold the process open, and its failures are nobody's errors.
 * @param onReopened called when a stream is open again after one that was cut: a change may have been missed
 */
export function keepListening(sdk: SdkClient, onReopened: () => void): () => void {
  const waits = backoff(WAITS);
  let stopped = false;
  let timer: NodeJS.Timeout | undefined;
  let first = true;
  const again = () => {
    if (stopped) return;
    timer = setTimeout(() => void listen(), waits.next());
    timer.unref();
  };
  const listen = async () => {
    const began = Date.now();
    try {
      const filter = { toolsListChanged: true };
      const stream = await withExchange({ listening: true }, () => sdk.listen(filter, { timeout: ACK_MS }));
      if (!first && !stopped) onReopened();
      first = false;
      await stream.closed;
      if (Date.now() - began > GOOD_MS) waits.reset();
    } catch (error) {
      if (isRefusal(error)) return;
    }
    again();
  };
  void listen();
  return () => {
    stopped = true;
    clearTimeout(timer);
  };
}

/**
 * The same for the older revision over HTTP, where the SDK opens one stream but gives it up after two failures.
 * @param reopen asks for a new stream
 * @returns told of the number of open streams; `alone` once streams end as soon as they begin: then only this asks for a new
 *   one, since the SDK would do so four times a second; `stop` ends it
 */
export function keepStream(
  reopen: () => Promise<void>,
  onReopened: () => void,
): { changed(open: number): void; readonly alone: boolean; stop(): void } {
  const waits = backoff(WAITS);
  let timer: NodeJS.Timeout | undefined;
  let lost = false;
  let stopped = false;
  let openedAt = 0;
  /** Streams in a row that ended early. */
  let brief = 0;
  const wait = () => {
    clearTimeout(timer);
    if (stopped) return;
    // the SDK's own attempts come first
    timer = setTimeout(() => void reopen().catch(wait), 1_500 + waits.next());
    timer.unref();
  };
  return {
    changed: (open) => {
      if (open === 0) {
        lost = true;
        if (Date.now() - openedAt > GOOD_MS) {
          waits.reset();
          brief = 0;
        } else brief++;
        wait();
        return;
      }
      clearTimeout(timer);
      openedAt = Date.now();
      if (lost) onReopened();
      lost = false;
    },
    get alone() {
      return brief > 1;
    },
    stop: () => {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
