/**
 * A response whose stream ends when its token does: who only listens sends no new request whose token could be looked at.
 * @param watch calls back once, at the end; returns how to stop
 */
export function endingWith(response: Response, watch: (ended: () => void) => () => void): Response {
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
