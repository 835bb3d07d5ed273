/**
 * A response whose stream is watched to its end, and may be ended: one that lives no longer than its token, since who only
 * listens sends no new request whose token could be looked at, or one that is in use until it was read, cut off or broken.
 * @param watch gets what ends the stream; returns what is called once when it has ended, however it did
 * @returns the response as it is when it has no event stream
 */
export function endingWith(response: Response, watch: (end: () => void) => () => void): Response {
  if (!response.body || !response.headers.get("content-type")?.startsWith("text/event-stream")) return response;
  const reader = response.body.getReader();
  let stop: () => void = () => undefined;
  let over = false;
  const finish = (): boolean => {
    if (over) return false;
    over = true;
    stop();
    return true;
  };
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      stop = watch(() => {
        if (!finish()) return;
        controller.close();
        reader.cancel().catch(() => undefined); // it ended by itself meanwhile
      });
    },
    async pull(controller) {
      try {
        const { done, value } = await reader.read();
        if (over) return;
        if (!done) controller.enqueue(value);
        else if (finish()) controller.close();
      } catch (error) {
        if (finish()) controller.error(error);
      }
    },
    async cancel(reason) {
      finish();
      await reader.cancel(reason).catch(() => undefined); // it ended by itself meanwhile
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
